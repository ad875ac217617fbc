/* The compiler and matcher of regular expressions.
 *
 * The parser (regex_parse.c) builds a tree; here it becomes a program of four instructions
 * (Thompson's construction). The matcher runs all alternatives at once as a set of program
 * positions, one step per character:
 *
 *     a(b|c)*     5: SET a -> 1
 *                 1: SPLIT -> 4 or 0
 *                 4: SPLIT -> 3 or 2
 *                 3: SET b -> 1
 *                 2: SET c -> 1
 *                 0: MATCH
 *
 * The set holds each position once, so the time is at most (size of the program) x (length of the
 * text), and the program is bounded. A backtracking matcher would be simpler and exponential for
 * patterns such as (a*)*b, and the pattern comes from any client that may create a CRD. Captures do
 * not exist. Most callers only ask whether a text matches; regex_find_within() also finds where, by
 * the rules of Go: the leftmost match, and of those the one that prefers the first way of every split.
 *
 * A compiled regex lives in the caller's arena and is immutable; a match allocates its sets
 * once. */
#include "regex_node.h"

enum { PROGRAM_MAX = 20000 };

enum op { OP_SET, OP_SPLIT, OP_ASSERT, OP_MATCH };

struct instruction {
    enum op op;
    enum regex_assert assert;
    const struct regex_set *set;
    uint32_t next, other; /* indexes; `other` is used by OP_SPLIT only */
};

struct regex {
    struct instruction *at;
    uint32_t n, start;
};

/* ---- compile: from the end to the beginning, so that the position that follows a node is known */

struct compiler {
    struct instruction *at;
    uint32_t n;
    bool full; /* PROGRAM_MAX reached: nothing more is emitted, and compiling fails */
};

static uint32_t put_instruction(struct compiler *c, struct instruction i)
{
    if (c->n == PROGRAM_MAX) {
        c->full = true;
        return 0;
    }
    c->at[c->n] = i;
    return c->n++;
}

static uint32_t emit_node(struct compiler *c, const struct regex_node *node, uint32_t next);

/* The split is emitted before the body, which loops back to it, and patched afterwards. */
static uint32_t emit_star(struct compiler *c, const struct regex_node *node, uint32_t next)
{
    struct instruction split = { .op = OP_SPLIT, .next = next, .other = next };
    uint32_t loop = put_instruction(c, split);
    uint32_t entry = emit_node(c, node->left, loop);
    if (!c->full && node->lazy)
        c->at[loop].other = entry;
    else if (!c->full)
        c->at[loop].next = entry;
    return loop;
}

/* x{2,4} becomes x x (x (x)?)?: copies, because the matcher counts nothing. PROGRAM_MAX bounds
 * them. */
static uint32_t emit_repeat(struct compiler *c, const struct regex_node *node, uint32_t next)
{
    const struct regex_node *body = node->left;
    if (node->max == REGEX_NO_MAX) {
        next = emit_star(c, node, next);
    } else {
        uint32_t end = next;
        for (uint32_t i = node->min; i < node->max && !c->full; i++) {
            uint32_t entry = emit_node(c, body, next);
            struct instruction split = { .op = OP_SPLIT, .next = entry, .other = end };
            if (node->lazy)
                split.next = end, split.other = entry;
            next = put_instruction(c, split);
        }
    }
    for (uint32_t i = 0; i < node->min && !c->full; i++)
        next = emit_node(c, body, next);
    return next;
}

/* Chains of alternatives lean to the left: a loop instead of recursion, as deep as the chain is
 * long. */
static uint32_t emit_alternatives(struct compiler *c, const struct regex_node *node, uint32_t next)
{
    uint32_t tail = emit_node(c, node->right, next);
    for (node = node->left; node->kind == REGEX_ALT && !c->full; node = node->left) {
        uint32_t entry = emit_node(c, node->right, next);
        tail =
            put_instruction(c,
                            (struct instruction){ .op = OP_SPLIT, .next = entry, .other = tail });
    }
    uint32_t entry = emit_node(c, node, next);
    return put_instruction(c, (struct instruction){ .op = OP_SPLIT, .next = entry, .other = tail });
}

/* Emits the program for a node that continues at `next`; returns where it starts. */
static uint32_t emit_node(struct compiler *c, const struct regex_node *node, uint32_t next)
{
    if (c->full)
        return 0;
    switch (node->kind) {
    case REGEX_EMPTY:
        return next;
    case REGEX_SET:
        return put_instruction(c, (struct instruction){
                                      .op = OP_SET, .set = &node->set, .next = next });
    case REGEX_ASSERT:
        return put_instruction(c, (struct instruction){ OP_ASSERT, .assert = node->assert,
                                                        .next = next });
    case REGEX_CAT: /* chains lean to the left: follow them without recursion */
        for (; node->kind == REGEX_CAT && !c->full; node = node->left)
            next = emit_node(c, node->right, next);
        return emit_node(c, node, next);
    case REGEX_ALT:
        return emit_alternatives(c, node, next);
    default:
        return emit_repeat(c, node, next);
    }
}

/* The tree and the program are built in scratch memory; only the instructions in use and their sets
 * are copied to the caller's arena. */
int regex_compile(struct arena *a, str pattern, const struct regex **ret, err_t *e)
{
    auto_arena struct arena scratch = { 0 };
    const struct regex_node *tree = NULL;
    int failed = regex_parse(&scratch, pattern, &tree, e);
    if (failed)
        return failed;
    auto_free struct instruction *program = mem_alloc(PROGRAM_MAX * sizeof(*program));
    struct compiler c = { .at = program };
    uint32_t match = put_instruction(&c, (struct instruction){ .op = OP_MATCH });
    uint32_t start = emit_node(&c, tree, match);
    if (c.full)
        return err_set(e, E2BIG, "pattern `" STR_FMT "` has too many repetitions",
                       STR_ARG(pattern));
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
    uint32_t *dense, *sparse; /* a sparse set of positions: i is in it if dense[sparse[i]] == i, */
    uint32_t n;               /* and sparse[i] < n; clearing it is n = 0 */
};

struct run {
    const struct regex *regex;
    uint32_t *stack;        /* of reach_from() */
    uint32_t before, after; /* the characters around; REGEX_NO_CHAR at either end of the text */
    bool matched;
};

static bool is_word_char(uint32_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

/* Whether an assertion holds between the characters `before` and `after`. */
static bool assertion_holds(const struct run *run, enum regex_assert what)
{
    bool edge = is_word_char(run->before) != is_word_char(run->after);
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

/* Adds a position and all positions that can be reached from it without consuming a character. */
static void reach_from(struct run *run, struct states *s, uint32_t first)
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
        if (in->op == OP_SPLIT || (in->op == OP_ASSERT && assertion_holds(run, in->assert)))
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

/* Searching for a match anywhere needs no loop over start positions: adding the start of the
 * program before each character begins an attempt there, and all attempts share the set. */
bool regex_matches_within(const struct regex *r, str text, uint64_t most, uint64_t *steps)
{
    *steps += r->n; /* clearing the memory counts too */
    /* two sets of two arrays, and a stack: each position is added once and pushes at most two
     * successors */
    auto_free uint32_t *memory = mem_zero((size_t)r->n * 7 + 2, sizeof(*memory));
    struct states now = { memory, memory + r->n, 0 },
                  then = { memory + 2 * (size_t)r->n, memory + 3 * (size_t)r->n, 0 };
    struct run run = { r, memory + 4 * (size_t)r->n, REGEX_NO_CHAR, REGEX_NO_CHAR, false };
    for (size_t at = 0;;) {
        size_t width = 0;
        run.after = at < text.n ? regex_char(text, at, &width) : REGEX_NO_CHAR;
        reach_from(&run, &now, r->start);
        *steps += now.n + 1;
        if (run.matched || at >= text.n)
            return run.matched;
        if (*steps >= most)
            return false;
        /* assertions after this character depend on it and on the next one */
        size_t next_width = 0;
        uint32_t c = run.after;
        run.before = c;
        run.after = at + width < text.n ? regex_char(text, at + width, &next_width) : REGEX_NO_CHAR;
        then.n = 0;
        for (uint32_t i = 0; i < now.n; i++) {
            const struct instruction *in = &r->at[now.dense[i]];
            if (in->op == OP_SET && set_has(in->set, c))
                reach_from(&run, &then, in->next);
        }
        struct states swap = now;
        now = then, then = swap;
        at += width;
        if (run.matched)
            return true;
    }
}

/* The sets keep the order in which positions were reached, which is the order of preference, and each
 * position remembers where its attempt began. A match ends all attempts of lower preference. */
bool regex_find_within(const struct regex *r, str text, size_t from, uint64_t most, uint64_t *steps,
                       size_t *ret_start, size_t *ret_end)
{
    *steps += r->n;
    auto_free uint32_t *memory = mem_zero((size_t)r->n * 7 + 2, sizeof(*memory));
    auto_free size_t *starts = mem_zero((size_t)r->n * 2 + 1, sizeof(*starts));
    size_t *start_now = starts, *start_then = starts + r->n;
    struct states now = { memory, memory + r->n, 0 },
                  then = { memory + 2 * (size_t)r->n, memory + 3 * (size_t)r->n, 0 };
    struct run run = { r, memory + 4 * (size_t)r->n, REGEX_NO_CHAR, REGEX_NO_CHAR, false };
    bool found = false;
    size_t width = 0;
    for (size_t at = from; at > 0 && run.before == REGEX_NO_CHAR;) { /* the character before */
        size_t back = at - 1;
        while (back > 0 && at - back < 4 && ((unsigned char)text.p[back] & 0xc0) == 0x80)
            back--;
        run.before = regex_char(text, back, &width);
    }
    for (size_t at = from;; at += width) {
        run.after = at < text.n ? regex_char(text, at, &width) : REGEX_NO_CHAR;
        if (!found) {
            uint32_t before = now.n;
            reach_from(&run, &now, r->start);
            for (uint32_t i = before; i < now.n; i++)
                start_now[i] = at;
        }
        *steps += now.n + 1;
        if (*steps >= most || (!now.n && found))
            return found;
        uint32_t c = run.after, before_then;
        size_t next_width = 0;
        struct run ahead = run; /* assertions after this character see the next one */
        ahead.before = c;
        ahead.after = c != REGEX_NO_CHAR && at + width < text.n
                          ? regex_char(text, at + width, &next_width)
                          : REGEX_NO_CHAR;
        then.n = 0;
        for (uint32_t i = 0; i < now.n; i++) {
            const struct instruction *in = &r->at[now.dense[i]];
            if (in->op == OP_MATCH) {
                *ret_start = start_now[i];
                *ret_end = at;
                found = true;
                break;
            }
            if (in->op != OP_SET || c == REGEX_NO_CHAR || !set_has(in->set, c))
                continue;
            before_then = then.n;
            reach_from(&ahead, &then, in->next);
            for (uint32_t j = before_then; j < then.n; j++)
                start_then[j] = start_now[i];
        }
        if (at >= text.n)
            return found;
        struct states swap = now;
        size_t *swap_starts = start_now;
        now = then, then = swap;
        start_now = start_then, start_then = swap_starts;
        run.before = c;
    }
}
