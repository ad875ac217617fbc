/* The matcher: Thompson's construction run as a set of states, one step a character, so time is at
 * most (size of the program) x (length of the text), and the program is bounded. Captures and
 * greediness do not exist here: only whether a text matches is ever asked.
 *
 * The parser (regex_parse.c) makes a tree of nodes; here it becomes a program of four instructions. */
#include "regex_node.h"

enum { PROGRAM_MAX = 20000 };

enum op { OP_SET, OP_SPLIT, OP_ASSERT, OP_MATCH };

struct instruction {
    enum op op;
    enum regex_assert assert;
    const struct regex_set *set;
    uint32_t next, other; /* `other` for OP_SPLIT */
};

struct regex {
    struct instruction *at;
    uint32_t n, start;
};

/* ---- compile: from the end to the beginning, so that a node knows what follows it */

struct compiler {
    struct instruction *at;
    uint32_t n;
    bool full;
};

static uint32_t put(struct compiler *c, struct instruction i)
{
    if (c->n == PROGRAM_MAX) {
        c->full = true;
        return 0;
    }
    c->at[c->n] = i;
    return c->n++;
}

static uint32_t emit(struct compiler *c, const struct regex_node *node, uint32_t next);

static uint32_t emit_star(struct compiler *c, const struct regex_node *body, uint32_t next)
{
    uint32_t loop = put(c, (struct instruction){ .op = OP_SPLIT, .other = next });
    uint32_t entry = emit(c, body, loop);
    if (!c->full)
        c->at[loop].next = entry;
    return loop;
}

static uint32_t emit_repeat(struct compiler *c, const struct regex_node *node, uint32_t next)
{
    const struct regex_node *body = node->left;
    if (node->max == REGEX_NO_MAX) {
        next = emit_star(c, body, next);
    } else {
        uint32_t end = next;
        for (uint32_t i = node->min; i < node->max && !c->full; i++) {
            uint32_t entry = emit(c, body, next);
            next = put(c, (struct instruction){ .op = OP_SPLIT, .next = entry, .other = end });
        }
    }
    for (uint32_t i = 0; i < node->min && !c->full; i++)
        next = emit(c, body, next);
    return next;
}

static uint32_t emit_alternatives(struct compiler *c, const struct regex_node *node, uint32_t next)
{
    uint32_t tail = emit(c, node->right, next);
    for (node = node->left; node->kind == REGEX_ALT && !c->full; node = node->left) {
        uint32_t entry = emit(c, node->right, next);
        tail = put(c, (struct instruction){ .op = OP_SPLIT, .next = entry, .other = tail });
    }
    uint32_t entry = emit(c, node, next);
    return put(c, (struct instruction){ .op = OP_SPLIT, .next = entry, .other = tail });
}

static uint32_t emit(struct compiler *c, const struct regex_node *node, uint32_t next)
{
    if (c->full)
        return 0;
    switch (node->kind) {
    case REGEX_EMPTY:
        return next;
    case REGEX_SET:
        return put(c, (struct instruction){ .op = OP_SET, .set = &node->set, .next = next });
    case REGEX_ASSERT:
        return put(c, (struct instruction){ OP_ASSERT, .assert = node->assert, .next = next });
    case REGEX_CAT: /* chains lean to the left: follow them without recursion */
        for (; node->kind == REGEX_CAT && !c->full; node = node->left)
            next = emit(c, node->right, next);
        return emit(c, node, next);
    case REGEX_ALT:
        return emit_alternatives(c, node, next);
    default:
        return emit_repeat(c, node, next);
    }
}

int regex_compile(struct arena *a, str pattern, const struct regex **ret, err_t *e)
{
    auto_arena struct arena scratch = { 0 };
    const struct regex_node *tree = NULL;
    int failed = regex_parse(&scratch, pattern, &tree, e);
    if (failed)
        return failed;
    auto_free struct instruction *program = mem_alloc(PROGRAM_MAX * sizeof(*program));
    struct compiler c = { .at = program };
    uint32_t match = put(&c, (struct instruction){ .op = OP_MATCH });
    uint32_t start = emit(&c, tree, match);
    if (c.full)
        return err_set(e, E2BIG, "pattern `" STR_FMT "` repeats too much", STR_ARG(pattern));
    struct regex *r = arena_new(a, struct regex);
    *r = (struct regex){ arena_array(a, c.n, sizeof(*r->at)), c.n, start };
    memcpy(r->at, program, c.n * sizeof(*r->at));
    for (uint32_t i = 0; i < c.n; i++) {
        if (r->at[i].op != OP_SET)
            continue;
        struct regex_set *set = arena_new(a, struct regex_set);
        *set = *r->at[i].set;
        set->at = arena_array(a, set->n, sizeof(*set->at));
        if (set->n)
            memcpy(set->at, r->at[i].set->at, set->n * sizeof(*set->at));
        r->at[i].set = set;
    }
    *ret = r;
    return 0;
}

/* ---- run */

struct states {
    uint32_t *dense, *sparse; /* the set of instructions reached; dense[sparse[i]] == i */
    uint32_t n;
};

struct run {
    const struct regex *regex;
    uint32_t *stack;
    uint32_t before, after; /* the characters around; REGEX_NO_CHAR at an end */
    bool matched;
};

static bool word_char(uint32_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

static bool holds(const struct run *run, enum regex_assert what)
{
    bool edge = word_char(run->before) != word_char(run->after);
    switch (what) {
    case REGEX_TEXT_START:
        return run->before == REGEX_NO_CHAR;
    case REGEX_TEXT_END:
        return run->after == REGEX_NO_CHAR;
    case REGEX_LINE_START:
        return run->before == REGEX_NO_CHAR || run->before == '\n';
    case REGEX_LINE_END:
        return run->after == REGEX_NO_CHAR || run->after == '\n';
    case REGEX_WORD_EDGE:
        return edge;
    default:
        return !edge;
    }
}

static bool add_state(struct states *s, uint32_t i)
{
    if (s->sparse[i] < s->n && s->dense[s->sparse[i]] == i)
        return false;
    s->sparse[i] = s->n;
    s->dense[s->n++] = i;
    return true;
}

/* Adds an instruction and all that is reached from it without reading a character. */
static void reach(struct run *run, struct states *s, uint32_t first)
{
    uint32_t depth = 0;
    run->stack[depth++] = first;
    while (depth) {
        uint32_t i = run->stack[--depth];
        if (!add_state(s, i))
            continue;
        const struct instruction *in = &run->regex->at[i];
        if (in->op == OP_MATCH)
            run->matched = true;
        if (in->op == OP_SPLIT)
            run->stack[depth++] = in->other;
        if (in->op == OP_SPLIT || (in->op == OP_ASSERT && holds(run, in->assert)))
            run->stack[depth++] = in->next;
    }
}

static bool set_has(const struct regex_set *set, uint32_t c)
{
    uint32_t low = 0, high = set->n;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (c < set->at[mid].first)
            high = mid;
        else if (c > set->at[mid].last)
            low = mid + 1;
        else
            return true;
    }
    return false;
}

bool regex_matches(const struct regex *r, str text)
{
    uint64_t steps = 0;
    return regex_matches_within(r, text, UINT64_MAX, &steps);
}

bool regex_matches_within(const struct regex *r, str text, uint64_t most, uint64_t *steps)
{
    *steps += r->n; /* the memory to be cleared */
    /* a state goes onto the stack at most once for each of its two ways in */
    auto_free uint32_t *memory = mem_zero((size_t)r->n * 7 + 2, sizeof(*memory));
    struct states now = { memory, memory + r->n, 0 },
                  then = { memory + 2 * (size_t)r->n, memory + 3 * (size_t)r->n, 0 };
    struct run run = { r, memory + 4 * (size_t)r->n, REGEX_NO_CHAR, REGEX_NO_CHAR, false };
    for (size_t at = 0;;) {
        size_t width = 0;
        run.after = at < text.n ? regex_char(text, at, &width) : REGEX_NO_CHAR;
        reach(&run, &now, r->start);
        *steps += now.n + 1;
        if (run.matched || at >= text.n)
            return run.matched;
        if (*steps >= most)
            return false;
        /* what lies between this character and the next decides the assertions behind it */
        size_t next_width = 0;
        uint32_t c = run.after;
        run.before = c;
        run.after = at + width < text.n ? regex_char(text, at + width, &next_width) : REGEX_NO_CHAR;
        then.n = 0;
        for (uint32_t i = 0; i < now.n; i++) {
            const struct instruction *in = &r->at[now.dense[i]];
            if (in->op == OP_SET && set_has(in->set, c))
                reach(&run, &then, in->next);
        }
        struct states swap = now;
        now = then, then = swap;
        at += width;
        if (run.matched)
            return true;
    }
}
