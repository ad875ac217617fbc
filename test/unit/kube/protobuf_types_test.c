/* The client's table of protobuf fields against the server's types, which are parsed from the same files by other code; and
 * that every cache of a built-in kind can be read with it. */
#include "apiserver/schema/types.h"
#include "kube/cache.h"
#include "kube/protobuf_types.h"
#include "market/market_agent_pod.h"
#include "market/market_records.h"
#include "saturation/saturation_records.h"
#include "schedule/schedule_records.h"
#include "tap.h"

static const struct prototable *const table = &kube_protobuf_types;

/* The type of a value that is neither list nor map. */
static int type_of(const struct schema *s)
{
    static const int texts[] = { [SCHEMA_PLAIN] = PROTO_STRING,
                                 [SCHEMA_QUANTITY] = PROTO_QUANTITY,
                                 [SCHEMA_TIME] = PROTO_TIME,
                                 [SCHEMA_MICRO_TIME] = PROTO_MICRO_TIME,
                                 [SCHEMA_BYTES] = PROTO_BYTES };
    switch (s->type) {
    case SCHEMA_STRING:
        return texts[s->format];
    case SCHEMA_INTEGER:
        return s->format == SCHEMA_INT32 ? PROTO_INT32 : PROTO_INT64;
    case SCHEMA_BOOLEAN:
        return PROTO_BOOL;
    case SCHEMA_INT_OR_STRING:
        return PROTO_INT_OR_STRING;
    case SCHEMA_OBJECT:
        return PROTO_MESSAGE;
    default:
        return -1;
    }
}

static const struct schema_field *server_field(const struct schema_message *m, str name)
{
    for (uint32_t i = 0; i < m->n_fields; i++)
        if (str_eq(m->fields[i].name, name))
            return &m->fields[i];
    return NULL;
}

static void compare_message(const struct prototable_message *ours,
                            const struct schema_message *theirs, int *fields);

static void compare_field(const struct prototable_field *f, const struct schema_field *server,
                          int *fields)
{
    const struct schema *s = &server->schema;
    bool list = s->type == SCHEMA_ARRAY, map = s->type == SCHEMA_OBJECT && !s->message;
    EQ_INT(f->number, server->number);
    EQ_INT((f->flags & PROTO_LIST) != 0, list);
    EQ_INT((f->flags & PROTO_MAP) != 0, map);
    EQ_INT((f->flags & PROTO_ALWAYS) != 0,
           server->presence == SCHEMA_ALWAYS || server->presence == SCHEMA_ALWAYS_NULL);
    EQ_INT((f->flags & PROTO_IF_SET) != 0,
           server->presence == SCHEMA_KEEP || server->presence == SCHEMA_ALWAYS_NULL);
    s = list || map ? s->element : s;
    EQ_INT(f->type, type_of(s));
    ++*fields;
    if (f->type == PROTO_MESSAGE && OK(s->message != NULL))
        compare_message(&table->messages[f->message], s->message, fields);
}

/* Every field of ours is the server's, and a complete message has all of the server's. */
static void compare_message(const struct prototable_message *ours,
                            const struct schema_message *theirs, int *fields)
{
    unsigned numbered = 0;
    for (uint32_t i = 0; i < theirs->n_fields; i++)
        numbered += theirs->fields[i].number > 0;
    OK(ours->complete ? ours->n == numbered : ours->n <= numbered);
    for (unsigned i = 0; i < ours->n; i++) {
        const struct prototable_field *f = &table->fields[ours->first + i];
        const struct schema_field *server = server_field(theirs, prototable_name(table, f));
        if (OK(server != NULL))
            compare_field(f, server, fields);
    }
}

static void is_what_the_server_has(void)
{
    for (size_t i = 0; i < table->n_kinds; i++) {
        const struct prototable_kind *k = &table->kinds[i];
        str group = str_c(*k->group ? k->group : "core");
        char name[100];
        if (!strcmp(k->kind, "Status"))
            continue; /* not a kind of the server; recorded bytes check it: project_protobuf_test.c */
        snprintf(name, sizeof(name), STR_FMT ".%s.%s",
                 STR_ARG(str_upto(group, MIN(str_find_char(group, '.'), group.n))), k->version,
                 k->kind);
        const struct schema_message *m = types_message(name);
        int fields = 0;
        if (OK(m != NULL))
            compare_message(&table->messages[k->message], m, &fields);
        OK(fields > 10);
    }
}

/* One that is not would be watched in JSON, at many times the cost for the server. */
static void every_cache_can_be_read(void)
{
    static const struct cache_spec *const specs[] = { &saturation_deployment_cache,
                                                      &saturation_statefulset_cache,
                                                      &saturation_set_cache,
                                                      &saturation_replica_cache,
                                                      &saturation_node_cache,
                                                      &saturation_configmap_cache,
                                                      &saturation_hpa_bounds_cache,
                                                      &saturation_namespace_cache,
                                                      &market_pod_cache,
                                                      &market_agent_pod_cache,
                                                      &market_agent_node_cache,
                                                      &market_agent_config_cache,
                                                      &market_agent_hpa_cache,
                                                      &schedule_hpa_cache };
    struct projector *j = projector_new();
    for (size_t i = 0; i < countof(specs); i++) {
        struct cache *c;
        err_t e;
        OK_CALL(cache_new(j, specs[i], &c, &e), &e);
        if (!OK(projection_accepts_protobuf(cache_projection(c))))
            printf("# %zu: %s\n", i, specs[i]->resource->plural);
        cache_free(c);
    }
    projector_free(j);
}

/* What a path cannot be: below a scalar, through a list without [], a field that is not in the table, a message of which
 * some fields are not. */
static void other_paths_are_refused(void)
{
    static const struct {
        const char *path;
        enum field_type type;
        bool fine;
    } t[] = {
        { "spec.nodeName", F_WORD, true },
        { "spec.containers[].image", F_WORD, true },
        { "metadata.labels.any", F_WORD, true },
        { "spec.nodeName.x", F_WORD, false },
        { "spec.containers.image", F_WORD, false },
        { "spec.os[].name", F_WORD, false },
        { "spec.noSuchField", F_WORD, false },
        { "metadata.labels[].any", F_WORD, false },
        { "kind", F_WORD, false },
        { "spec.os", F_RAW, true },
        { "spec.containers", F_RAW, false },
        { "spec", F_RAW, false },
        { "spec", F_HAS, true },
        { "spec.affinity.podAffinity", F_HAS, false },
    };
    struct pod {
        struct record meta;
        str text;
    };
    struct projector *j = projector_new();
    for (size_t i = 0; i < countof(t); i++) {
        const struct field field = { t[i].path, t[i].type, offsetof(struct pod, text) };
        const struct fields fields = { sizeof(struct pod), &field, 1 };
        struct projection *p;
        err_t e;
        OK_CALL(projection_new(j, &fields, 0, &p, &e), &e);
        if (!OK(projection_accept_protobuf(p, table, "", "v1", "Pod") == t[i].fine))
            printf("# %s\n", t[i].path);
        EQ_INT(projection_accepts_protobuf(p), t[i].fine);
        projection_free(p);
    }
    projector_free(j);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(is_what_the_server_has),
                                        TAP(every_cache_can_be_read),
                                        TAP(other_paths_are_refused),
                                        { 0 } });
}
