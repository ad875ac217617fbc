/* Replays the recorded server-side apply transcripts on apply_patch and apply_update alone: each step
 * starts from what the real server answered before, and must give the owners it recorded. */
#include "tap.h"

#include "base/file.h"
#include "base/map.h"
#include "shapes.h"
#include "json/apply.h"
#include "json/merge.h"
#include "json/yaml.h"

struct replay {
    struct arena arena;
    struct map objects;      /* path to the last answer */
    const struct json *step; /* in hand */
    str path;                /* of the object, without its subresource */
    str subresource;
    const struct json *uids[3]; /* saved as u1, u2 */
    size_t checked;
};

static const struct shape *shape_of_path(str path)
{
    static const struct {
        const char *part;
        const struct shape *shape;
    } kinds[] = {
        { "/deployments", &deployment },
        { "/services", &service },
        { "/configmaps", &config_map },
        { "/widgets", &widget },
    };
    for (size_t i = 0; i < countof(kinds); i++)
        if (str_find(path, str_c(kinds[i].part)) != SIZE_MAX)
            return kinds[i].shape;
    return NULL;
}

/* Bodies contain ${u1} where the response contains (uid:2). */
static void put_uids(struct replay *r, struct json *v)
{
    for (size_t i = 0; json_is(v, JSON_ARR) && i < v->n; i++)
        put_uids(r, v->items[i]);
    json_each(m, v) {
        str text = json_text(m->value);
        if (str_starts(text, S("${u")) && text.p[3] >= '1' && text.p[3] <= '2')
            m->value = json_copy(&r->arena, r->uids[text.p[3] - '0']);
        else
            put_uids(r, m->value);
    }
}

static struct json *body(struct replay *r)
{
    struct json *v = NULL;
    err_t e;
    str raw = json_text(json_get(r->step, "raw"));
    if (raw.n)
        OK_CALL(yaml_parse(&r->arena, raw, &v, &e), &e);
    else
        v = json_copy(&r->arena, json_get(r->step, "body"));
    put_uids(r, v);
    return v;
}

/* Every recorded entry must be ours too, and we have no other. Times were not recorded; those of
 * controllers came between the steps. */
static void compare_owners(struct replay *r, const struct json *object)
{
    const struct json *want = json_at(r->step, "got", "body", "metadata", "managedFields", NULL);
    struct json *have = json_copy(&r->arena, json_at(object, "metadata", "managedFields", NULL));
    size_t recorded = 0, ours = 0;
    for (size_t i = 0; i < json_len(have); i++) {
        json_del(have->items[i], S("time"));
        ours += !str_eqc(json_text(json_get(have->items[i], "manager")), "kube-controller-manager");
    }
    for (size_t i = 0; i < json_len(want); i++) {
        const struct json *entry = json_item(want, i);
        bool found = false;
        for (size_t j = 0; j < json_len(have) && !found; j++)
            found = json_eq(entry, json_item(have, j));
        if (str_eqc(json_text(json_get(entry, "manager")), "kube-controller-manager"))
            continue;
        recorded++;
        if (!found)
            tap_note(__FILE__, __LINE__, "%s: no entry like %s in %s",
                     json_text(json_get(r->step, "name")).p, json_to_str(&r->arena, entry).p,
                     have ? json_to_str(&r->arena, have).p : "nothing");
    }
    EQ_INT(ours, recorded);
    r->checked++;
}

static void compare_conflicts(struct replay *r, const struct apply_result *result)
{
    const struct json *status = json_at(r->step, "got", "body", NULL);
    const struct json *causes = json_at(status, "details", "causes", NULL);
    EQ_STR(result->message, json_text(json_get(status, "message")));
    EQ_INT(result->n_conflicts, json_len(causes));
    for (size_t i = 0; i < result->n_conflicts; i++) {
        EQ_STR(result->conflicts[i].message, json_text(json_get(json_item(causes, i), "message")));
        EQ_STR(result->conflicts[i].field, json_text(json_get(json_item(causes, i), "field")));
    }
    r->checked++;
}

static void compare_error(struct replay *r, int result, const err_t *e)
{
    const struct json *status = json_at(r->step, "got", "body", NULL);
    int64_t code = json_int(json_get(status, "code"), 0);
    EQ_INT(result, code == 400 ? -EINVAL : -EBADMSG);
    EQ_STR(str_c(e->text), json_text(json_get(status, "message")));
    r->checked++;
}

static void step_apply(struct replay *r, struct apply_request *request)
{
    struct apply_result result = { 0 };
    err_t e = { 0 };
    int64_t status = json_int(json_at(r->step, "got", "status", NULL), 0);
    str name = json_text(json_at(request->object, "metadata", "name", NULL));
    if (status == 422 || (name.n && !str_ends(r->path, name)))
        return; /* refused before it comes to us */
    request->force = str_eq(json_text(json_at(r->step, "query", "force", NULL)), S("true"));
    int code = apply_patch(&r->arena, request, &result, &e);
    if (status == 409 && code == -EEXIST)
        compare_conflicts(r, &result);
    else if (status < 300 && OK_CALL(code, &e))
        compare_owners(r, result.object);
    else if (status >= 300)
        compare_error(r, code, &e);
}

static void step_update(struct replay *r, struct apply_request *request, str method)
{
    if (json_int(json_at(r->step, "got", "status", NULL), 0) >= 300)
        return;
    struct json *object = body(r);
    if (str_eq(method, S("PATCH")))
        object = merge_patch(&r->arena, request->live, object);
    if (str_eq(method, S("PUT"))) /* the server puts the identity back */
        json_set(&r->arena, object, S("metadata"),
                 json_copy(&r->arena, json_get(request->live, "metadata")));
    if (str_eq(method, S("PUT")))
        json_del(json_get(object, "metadata"), S("managedFields"));
    request->object = object;
    object = apply_update(&r->arena, request);
    if (!r->subresource.n)
        compare_owners(r, object);
    else /* the answer is the subresource: the next step shows what became of the object */
        map_put(&r->objects, r->path, object);
}

static void record_answer(struct replay *r, str method)
{
    const struct json *answer = json_at(r->step, "got", "body", NULL);
    static const char *const names[] = { "", "u1", "u2" };
    for (size_t i = 1; i < countof(names); i++)
        if (json_at(r->step, "save", names[i], NULL))
            r->uids[i] = json_at(answer, "metadata", "uid", NULL);
    if (str_eqc(json_text(json_get(answer, "kind")), "Status") || r->subresource.n)
        return;
    str path = r->path;
    if (str_eq(method, S("POST")))
        path = arena_printf(&r->arena, STR_FMT "/" STR_FMT, STR_ARG(path),
                            STR_ARG(json_text(json_at(answer, "metadata", "name", NULL))));
    map_put(&r->objects, path, (void *)(uintptr_t)answer);
}

static void take_step(struct replay *r)
{
    str path = json_text(json_get(r->step, "path")),
        method = json_text(json_get(r->step, "method"));
    str manager = json_text(json_at(r->step, "query", "fieldManager", NULL));
    r->subresource = str_ends(path, S("/scale")) ? S("scale") : S("");
    r->path = str_upto(path, path.n - (r->subresource.n ? r->subresource.n + 1 : 0));
    const struct json *answer = json_at(r->step, "got", "body", NULL);
    struct apply_request request = {
        .shape = shape_of_path(path),
        .version = json_text(json_get(answer, "apiVersion")),
        .kind = json_text(json_get(answer, "kind")),
        .subresource = r->subresource,
        .manager = manager.n ? manager : S("conformance"),
        .now = S("2026-11-15T20:38:14Z"),
        .live = map_get(&r->objects, r->path),
        .object = body(r),
    };
    if (request.live) {
        request.version = json_text(json_get(request.live, "apiVersion"));
        request.kind = json_text(json_get(request.live, "kind"));
    }
    if (!request.shape || str_find(path, S("customresourcedefinitions")) != SIZE_MAX)
        return;
    if (str_starts(json_text(json_at(r->step, "headers", "Content-Type", NULL)),
                   S("application/apply-patch")))
        step_apply(r, &request);
    else if (!str_eq(method, S("GET")))
        step_update(r, &request, method);
    else if (request.live)
        compare_owners(r, request.live);
    record_answer(r, method);
}

static void replay(const char *name, size_t checks)
{
    struct replay r = { 0 };
    auto_buf struct buf text = { 0 };
    struct json *transcript = NULL;
    err_t e;
    str path = arena_printf(&r.arena, "%s/conformance/transcripts/%s.json",
                            getenv("FLYBALL_TEST_DATA"), name);
    bool read = OK_CALL(file_read(path.p, 1 << 20, &text, &e), &e);
    for (size_t i = 0; i < text.n; i++) /* <uid:1> was no angle bracket in a real key */
        text.p[i] = text.p[i] == '<' ? '(' : text.p[i] == '>' ? ')' : text.p[i];
    if (read && OK_CALL(json_parse(&r.arena, buf_str(&text), &transcript, &e), &e)) {
        const struct json *steps = json_get(transcript, "steps");
        for (size_t i = 0; i < json_len(steps); i++) {
            r.step = json_item(steps, i);
            take_step(&r);
        }
    }
    EQ_INT(r.checked, checks);
    map_done(&r.objects);
    arena_done(&r.arena);
}

static void conflict(void)
{
    replay("ssa-conflict", 7);
}

static void core_lists(void)
{
    replay("ssa-core-lists", 12);
}

static void cr_basics(void)
{
    replay("ssa-cr-basics", 10);
}

static void cr_lists(void)
{
    replay("ssa-cr-lists", 8);
}

static void create(void)
{
    replay("ssa-create", 7);
}

static void deployments(void)
{
    replay("ssa-deployment", 8);
}

static void with_updates(void)
{
    replay("ssa-with-updates", 11);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(conflict),
                                        TAP(core_lists),
                                        TAP(cr_basics),
                                        TAP(cr_lists),
                                        TAP(create),
                                        TAP(deployments),
                                        TAP(with_updates),
                                        { 0 } });
}
