/* Conversion by webhooks; see convert.h.
 *
 *     stored object --- ConversionReview ---> tree --- metadata, prune, default ---> attached object
 *
 * Objects are sent without resourceVersion, many at a time. An answer that renames an object or fails for one of them
 * fails the call. */
#include "convert.h"

#include "watch.h"
#include "webhook.h"

enum {
    BATCH = 64,            /* objects per question... */
    BATCH_BYTES = 2 << 20, /* ...unless they are large */
    TIMEOUT_S = 30,
};

static bool is_version(const struct kind *k, const struct object *o)
{
    str version = object_span(o, o->version);
    return version.n == k->group.n + 1 + k->version.n && str_starts(version, k->group) &&
           str_ends(version, k->version);
}

/* An attached object is valid for one generation of the definition, which it has in `place`. */
static struct object *find_attached(const struct kind *k, const struct object *o)
{
    struct object *each = o->converted;
    while (each && !(is_version(k, each) && each->place == k->generation))
        each = each->converted;
    return each;
}

const struct object *convert_find(const struct kind *k, const struct object *o)
{
    return !k->conversion || is_version(k, o) ? o : find_attached(k, o);
}

/* Takes the reference. One of the same version is replaced. */
static void attach_object(const struct kind *k, struct object *o, struct object *converted)
{
    for (struct object **at = &o->converted; *at; at = &(*at)->converted) {
        struct object *old = *at;
        if (!is_version(k, old))
            continue;
        *at = old->converted;
        old->converted = NULL;
        object_unref(old);
        break;
    }
    converted->place = k->generation;
    converted->written_s = o->written_s;
    converted->converted = o->converted;
    o->converted = converted;
}

/* ---- asking */

static void answer_failed(struct call *c, const struct json *first, str why)
{
    call_status(c, &(struct status){
                       .code = 500,
                       .message = arena_printf(c->arena,
                                               "conversion webhook for " STR_FMT ", Kind=" STR_FMT
                                               " " STR_FMT,
                                               STR_ARG(json_text(json_get(first, "apiVersion"))),
                                               STR_ARG(json_text(json_get(first, "kind"))),
                                               STR_ARG(why)) });
}

/* Trees in the version of `to`, and the answer that they are from. NULL: the call waits, or is answered. */
static struct json *ask_webhook(struct call *c, const struct kind *to, struct json *objects,
                                const struct hook_answer **ret_answer)
{
    struct hook_target target;
    struct arena *a = c->arena;
    str why = S("");
    webhook_target(c, json_get(to->conversion, "clientConfig"), TIMEOUT_S, &target);
    struct hook_question q = { .id = arena_printf(a, "conversion " STR_FMT, STR_ARG(to->version)),
                               .version = webhook_choose_version(
                                   json_get(to->conversion, "conversionReviewVersions")),
                               .request = objects,
                               .wanted = kind_api_version(a, to) };
    const struct hook_answer *answer = webhook_ask(c, &target, &q);
    *ret_answer = answer;
    if (!answer)
        return NULL;
    struct json *converted =
        webhook_conversion_read(a, &answer->reply, q.version, answer->uid, q.wanted, objects, &why);
    err_t e = { 0 };
    for (size_t i = 0; converted && i < json_len(converted); i++) {
        if (kind_decode(to, a, json_item(converted, i), NULL, &e) == 0)
            continue;
        why = arena_printf(a, "returned an object that is not valid: %s", e.text);
        converted = NULL;
    }
    if (!converted)
        answer_failed(c, json_item(objects, 0), why);
    return converted;
}

/* The tree as it is sent: complete by the schema of its own version, without resourceVersion. */
static struct json *make_sent(struct arena *a, const struct kind *k, const struct object *o)
{
    struct json *tree = NULL;
    if (json_parse(a, object_json(o), &tree, NULL) < 0)
        return NULL;
    if (is_version(k->storage, o))
        kind_from_storage(k->storage, a, tree);
    struct json *metadata = json_make(a, tree, "metadata", NULL);
    json_del(metadata, S("resourceVersion"));
    return tree;
}

/* Asks about up to BATCH objects at once, and attaches what the webhook made of them. *ret_answer: where it is from. */
static bool convert_batch(struct call *c, const struct kind *k, struct object *const *objects,
                          size_t n, const struct hook_answer **ret_answer)
{
    struct arena *a = c->arena;
    struct json *list = json_new_arr(a);
    for (size_t i = 0; i < n; i++) {
        struct json *tree = make_sent(a, k, objects[i]);
        if (!tree)
            return true; /* a damaged file; reading reports it */
        json_push(a, list, tree);
    }
    struct json *converted = ask_webhook(c, k, list, ret_answer);
    for (size_t i = 0; converted && i < n; i++) {
        struct object *o = objects[i], *made = NULL;
        auto_buf struct buf text = { 0 };
        object_text(a, json_item(converted, i), o->rev, &text);
        if (object_new(object_key(o), buf_str(&text), o->rev, o->deleted, &made) == 0)
            attach_object(k, o, made);
    }
    return converted != NULL;
}

/* Batches do not depend on each other, so they are all asked in one run, side by side, as far as there is room. In the next
 * run the same batches are found again, unless another call has converted some of their objects in the meantime. What was
 * attached is not looked for again (unless `again`), so its answer is freed. */
bool convert_objects(struct call *c, const struct kind *k, struct object *const *objects, size_t n,
                     bool again)
{
    bool complete = true;
    if (!k->conversion)
        return true;
    for (size_t i = 0; i < n && !c->answer.status;) {
        struct object *batch[BATCH];
        size_t filled = 0, bytes = 0;
        for (; i < n && filled < BATCH && bytes < BATCH_BYTES; i++) {
            if (is_version(k, objects[i]) || (!again && find_attached(k, objects[i])))
                continue;
            batch[filled++] = objects[i];
            bytes += object_json(objects[i]).n;
        }
        if (!filled)
            break;
        if (!webhook_has_room(c))
            return false;
        const struct hook_answer *answer = NULL;
        struct call_scratch scratch;
        call_enter_scratch(c, &scratch);
        bool done = convert_batch(c, k, batch, filled, &answer);
        call_leave_scratch(c, &scratch);
        if (done && answer && !again)
            webhook_forget(c, answer);
        complete &= done;
    }
    return complete;
}

bool convert_all(struct call *c)
{
    str prefix = catalog_prefix(c->arena, c->kind, c->ns);
    VEC(struct object *) all = { 0 };
    struct tree_cursor cursor = tree_seek(store_tree(c->server->store), prefix);
    for (struct object *o; c->kind->conversion && (o = tree_next_in(&cursor, prefix));)
        vec_push(&all, o);
    bool done = convert_objects(c, c->kind, all.at, all.n, false);
    vec_done(&all);
    return done;
}

bool convert_one(struct call *c, const struct object *o)
{
    struct object *objects[] = { (struct object *)(uintptr_t)o };
    bool write = c->verb != VERB_GET;
    return !o || (convert_objects(c, c->kind, objects, 1, true) &&
                  (!write || convert_objects(c, c->kind->storage, objects, 1, true)));
}

/* Built-in kinds convert through their stored version. Custom ones without a webhook have the same fields in all versions:
 * nothing is pruned here, so that a webhook sees, and returns, the fields of the other version too. */
struct json *convert_tree(struct call *c, const struct kind *from, const struct kind *to,
                          const struct json *tree)
{
    struct arena *a = c->arena;
    struct json *copy = json_copy(a, tree);
    if (!from->custom) {
        kind_to_storage(from, a, copy);
        kind_from_storage(to, a, copy);
    }
    if (!from->conversion || from == to) {
        json_set_str(a, copy, "apiVersion", kind_api_version(a, to));
        return copy;
    }
    struct json *list = json_new_arr(a), *metadata = json_make(a, copy, "metadata", NULL);
    struct json *version = json_get(metadata, "resourceVersion");
    json_del(metadata, S("resourceVersion"));
    json_push(a, list, copy);
    const struct hook_answer *answer;
    struct json *converted = ask_webhook(c, to, list, &answer);
    if (converted && version)
        json_set(a, json_make(a, json_item(converted, 0), "metadata", NULL), S("resourceVersion"),
                 version);
    return converted ? json_item(converted, 0) : NULL;
}

struct json *convert_for_store(struct call *c, struct json *tree)
{
    return c->kind->conversion && c->kind != c->kind->storage
               ? convert_tree(c, c->kind, c->kind->storage, tree)
               : tree;
}

/* ---- for watches */

/* The conversion of one object that watches wait for. It is a call that no client sent: its answer goes to the watches. */
struct job {
    struct set_node node; /* of server->conversions; first */
    struct arena arena;
    struct call call;
    struct catalog_set *set;
    const struct kind *kind;
    struct object *object;
};

/* The answer is a Status if the conversion failed. */
static void finish_job(struct call *c)
{
    struct job *j = container_of(c, struct job, call);
    struct server *s = c->server;
    set_remove(&s->conversions, &j->node);
    watch_on_converted(s, j->kind, j->object, buf_str(&c->answer.body));
    object_unref(j->object);
    catalog_set_unref(j->set);
    buf_done(&c->answer.body);
    vec_done(&c->answer.headers);
    arena_done(&j->arena);
    free(j);
}

/* Runs again when the webhook has answered. */
static void run_job(struct call *c)
{
    struct job *j = container_of(c, struct job, call);
    struct random others;
    webhook_begin_run(c, &others);
    convert_objects(c, j->kind, &j->object, 1, false);
    webhook_end_run(c, &others);
    if (!webhook_is_waiting(c))
        server_finish(c);
}

struct job_key {
    const struct object *object;
    const struct kind *kind;
};

static bool is_job_for(const struct set_node *node, const void *context)
{
    const struct job *j = container_of(node, const struct job, node);
    const struct job_key *key = context;
    return j->object == key->object && j->kind == key->kind;
}

void convert_in_background(struct server *s, struct catalog_set *set, const struct kind *k,
                           struct object *o)
{
    struct job_key key = { o, k };
    uint32_t hash = set_hash(map_hash((str){ (const char *)&key, sizeof(key) }));
    if (set_find(&s->conversions, hash, is_job_for, &key))
        return;
    struct job *j = mem_zero(1, sizeof(*j));
    j->node.hash = hash;
    j->set = catalog_set_ref(set);
    j->kind = k;
    j->object = object_ref(o);
    j->call = (struct call){ .server = s, .arena = &j->arena, .kind = k, .finished = finish_job };
    set_add(&s->conversions, &j->node);
    webhook_prepare(&j->call, run_job);
    run_job(&j->call);
}
