/* What a kube-apiserver 1.36 sent, as JSON and as protobuf: the same objects must give the same records, with the fields
 * that the features declare and with every type of field there is. The bytes are recorded (protobuf_recorded.json), so they
 * also check the numbers of envelopes and of Status, which the embedded server does not have. */
#include "base/file.h"
#include "base/vec.h"
#include "kube/cache.h"
#include "kube/protobuf_types.h"
#include "market/market_agent_pod.h"
#include "market/market_records.h"
#include "protobuf_random.h"
#include "saturation/saturation_records.h"
#include "schedule/schedule_records.h"
#include "tap.h"
#include "json/frame.h"
#include "json/prototrim.h"
#include "json/protowire.h"

#include <stdlib.h>

static const struct field other_fields[] = {
    { "metadata.labels", F_MAP, RANDOM(maps[0]) },
    { "metadata.annotations", F_MAP, RANDOM(maps[1]) },
    { "metadata.ownerReferences", F_RAW, RANDOM(raws[0]) },
    { "metadata.finalizers", F_RAW, RANDOM(raws[1]) },
    { "metadata.creationTimestamp", F_TIME, RANDOM(numbers[0]) },
    { "metadata.deletionTimestamp", F_HAS, RANDOM(flags[0]) },
    { "metadata.generation", F_INT, RANDOM(numbers[1]) },
};
static const struct field status_fields[] = {
    { "status", F_RAW, RANDOM(raws[0]) },
    { "metadata.generateName", F_STR, RANDOM(texts[0]) },
};
static const struct field class_fields[] = {
    { "parameters", F_MAP, RANDOM(maps[0]) },
    { "volumeBindingMode", F_WORD, RANDOM(texts[0]) },
    { "allowVolumeExpansion", F_HAS, RANDOM(flags[0]) },
};

/* Declared fields by kind; NULL: all kinds. */
static const struct {
    const char *kind;
    struct fields fields;
} more[] = {
    { NULL, RANDOM_FIELDS(other_fields) },
    { "Namespace", RANDOM_FIELDS(status_fields) },
    { "StatefulSet", RANDOM_FIELDS(status_fields) },
    { "ReplicaSet", RANDOM_FIELDS(status_fields) },
    { "Job", RANDOM_FIELDS(status_fields) },
    { "StorageClass", RANDOM_FIELDS(class_fields) },
};

static const struct cache_spec *const features[] = {
    &saturation_deployment_cache, &saturation_statefulset_cache, &saturation_set_cache,
    &saturation_replica_cache,    &saturation_node_cache,        &saturation_configmap_cache,
    &saturation_hpa_bounds_cache, &saturation_namespace_cache,   &market_pod_cache,
    &market_agent_pod_cache,      &market_agent_node_cache,      &market_agent_config_cache,
    &market_agent_hpa_cache,      &schedule_hpa_cache,
};

struct reading {
    struct projection *projection;
    bool list, protobuf;
    VEC(struct record *) records;
    struct buf notes; /* the type of every event, and what bookmarks and errors have */
};

static int on_document(void *context, str text, err_t *e)
{
    struct reading *r = context;
    struct record *record = NULL;
    struct watch_line line = { 0 };
    int result;
    if (r->list)
        result = r->protobuf ? project_protobuf(r->projection, text, &record, e)
                             : project(r->projection, text, &record, e);
    else
        result = r->protobuf ? project_watch_event(r->projection, text, &line, e)
                             : project_watch_line(r->projection, text, &line, e);
    if (result < 0)
        return result;
    buf_printf(&r->notes, "%d %d %d " STR_FMT ";", line.type, line.initial_end, line.code,
               STR_ARG(line.rv));
    if (record || line.record)
        vec_push(&r->records, r->list ? record : line.record);
    return 0;
}

static void read_body(struct reading *r, str body)
{
    struct frame f;
    err_t e = { 0 };
    str envelope;
    frame_init(&f,
               r->list ? (r->protobuf ? FRAME_PROTO_LIST : FRAME_LIST)
                       : (r->protobuf ? FRAME_PROTO_WATCH : FRAME_LINES),
               on_document, r);
    for (size_t at = 0; at < body.n; at += 1000)
        OK_CALL(frame_feed(&f, str_upto(str_from(body, at), 1000), &e), &e);
    OK_CALL(frame_end(&f, &envelope, &e), &e);
    auto_arena struct arena a = { 0 };
    struct json *list = NULL;
    if (r->list && OK(json_parse(&a, envelope, &list, &e) == 0))
        buf_printf(&r->notes, STR_FMT " " STR_FMT,
                   STR_ARG(json_text(json_at(list, "metadata", "resourceVersion", NULL))),
                   STR_ARG(json_text(json_at(list, "metadata", "continue", NULL))));
    frame_done(&f);
}

static void reading_done(struct reading *r)
{
    for (size_t i = 0; i < r->records.n; i++)
        record_unref(r->records.at[i]);
    vec_done(&r->records);
    buf_done(&r->notes);
}

/* The number of objects. */
static size_t compare(struct projection *p, const struct json *recorded)
{
    auto_buf struct buf bytes = { 0 };
    bool list = str_eqc(json_text(json_get(recorded, "form")), "list");
    struct reading json = { p, .list = list }, protobuf = { p, .list = list, .protobuf = true };
    OK(base64_decode(&bytes, json_text(json_get(recorded, "protobuf"))) == 0);
    read_body(&json, json_text(json_get(recorded, "json")));
    read_body(&protobuf, buf_str(&bytes));
    size_t n = json.records.n;
    EQ_STR(buf_str(&protobuf.notes), buf_str(&json.notes));
    EQ_INT((int64_t)protobuf.records.n, (int64_t)n);
    for (size_t i = 0; i < n && i < protobuf.records.n; i++) {
        EQ_STR(protobuf.records.at[i]->rv, json.records.at[i]->rv);
        if (!OK(record_same(protobuf.records.at[i], json.records.at[i])))
            printf("# " STR_FMT " " STR_FMT "\n", STR_ARG(json_text(json_get(recorded, "kind"))),
                   STR_ARG(json.records.at[i]->name));
    }
    reading_done(&json);
    reading_done(&protobuf);
    return n;
}

static size_t compare_with(const struct fields *fields, const struct json *recorded)
{
    const struct prototable *t = &kube_protobuf_types;
    struct projector *j = projector_new();
    struct projection *p;
    err_t e;
    bool accepted = false;
    str kind = json_text(json_get(recorded, "kind"));
    OK_CALL(projection_new(j, fields, 0, &p, &e), &e);
    for (size_t i = 0; i < t->n_kinds; i++)
        if (str_eqc(kind, t->kinds[i].kind))
            accepted = projection_accept_protobuf(p, t, t->kinds[i].group, t->kinds[i].version,
                                                  t->kinds[i].kind);
    size_t n = OK(accepted) ? compare(p, recorded) : 0;
    projection_free(p);
    projector_free(j);
    return n;
}

static const struct json *read_recorded(struct arena *a)
{
    auto_buf struct buf path = { 0 }, text = { 0 };
    struct json *all = NULL;
    err_t e;
    buf_printf(&path, "%s/unit/kube/protobuf_recorded.json", getenv("FLYBALL_TEST_DATA"));
    OK_CALL(file_read(path.p, 1 << 20, &text, &e), &e);
    OK_CALL(json_parse(a, buf_str(&text), &all, &e), &e);
    return all;
}

static void gives_the_same_records(void)
{
    auto_arena struct arena a = { 0 };
    const struct json *all = read_recorded(&a);
    size_t objects = 0;
    for (size_t i = 0; i < json_len(all); i++) {
        const struct json *r = json_item(all, i);
        str kind = json_text(json_get(r, "kind"));
        if (str_eqc(kind, "Status"))
            continue;
        for (size_t k = 0; k < countof(random_kinds); k++)
            if (str_eqc(kind, random_kinds[k].kind))
                objects += compare_with(&random_kinds[k].fields, r);
        for (size_t k = 0; k < countof(more); k++)
            if (!more[k].kind || str_eqc(kind, more[k].kind))
                objects += compare_with(&more[k].fields, r);
    }
    OK(objects > 40);
}

static void of_every_feature(void)
{
    auto_arena struct arena a = { 0 };
    const struct json *all = read_recorded(&a);
    for (size_t k = 0; k < countof(features); k++) {
        size_t objects = 0;
        for (size_t i = 0; i < json_len(all); i++)
            if (str_eqc(json_text(json_get(json_item(all, i), "kind")),
                        features[k]->resource->kind))
                objects += compare_with(features[k]->keep, json_item(all, i));
        OK(objects > 0);
    }
}

static void a_status_is_the_same(void)
{
    auto_arena struct arena a = { 0 };
    const struct json *all = read_recorded(&a);
    const struct prototable *t = &kube_protobuf_types;
    static const char *const members[] = { "status", "message", "reason", "code", "details" };
    int seen = 0;
    for (size_t i = 0; i < json_len(all); i++) {
        const struct json *r = json_item(all, i);
        auto_buf struct buf bytes = { 0 }, text = { 0 };
        struct json *want, *got;
        str status;
        if (!str_eqc(json_text(json_get(r, "kind")), "Status"))
            continue;
        OK(base64_decode(&bytes, json_text(json_get(r, "protobuf"))) == 0);
        OK(protowire_unwrap(buf_str(&bytes), &status));
        OK(prototrim_whole(t, prototable_find(t, "", "v1", "Status"), status, &text));
        OK(json_parse(&a, json_text(json_get(r, "json")), &want, NULL) == 0 &&
           json_parse(&a, buf_str(&text), &got, NULL) == 0);
        for (size_t k = 0; k < countof(members); k++)
            OK(json_eq(json_get(want, members[k]), json_get(got, members[k])));
        seen++;
    }
    OK(seen > 2);
}

/* Text grows sixfold if it is all control characters; the limit on an object is the same in both encodings. */
static void text_that_grows_is_bounded(void)
{
    struct map {
        struct record meta;
        str data;
    };
    static const struct field fields[] = { { "data", F_RAW, offsetof(struct map, data) } };
    struct projector *j = projector_new();
    struct projection *p;
    err_t e = { 0 };
    OK_CALL(projection_new(j, FIELDS(struct map, fields), 0, &p, &e), &e);
    OK(projection_accept_protobuf(p, &kube_protobuf_types, "", "v1", "ConfigMap"));
    for (size_t n = 600 << 10; n <= 800 << 10; n += 200 << 10) {
        auto_buf struct buf text = { 0 }, meta = { 0 }, entry = { 0 }, message = { 0 };
        struct record *r = NULL;
        memset(buf_reserve(&text, n), 1, n);
        text.n = n;
        wire_put_bytes(&meta, 1, S("name"));
        wire_put_bytes(&entry, 1, S("key"));
        wire_put_bytes(&entry, 2, buf_str(&text));
        wire_put_bytes(&message, 1, buf_str(&meta));
        wire_put_bytes(&message, 2, buf_str(&entry));
        EQ_INT(project_protobuf(p, buf_str(&message), &r, &e), n > 700 << 10 ? -EMSGSIZE : 0);
        record_unref(r);
    }
    projection_free(p);
    projector_free(j);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(gives_the_same_records),
                                        TAP(of_every_feature),
                                        TAP(a_status_is_the_same),
                                        TAP(text_that_grows_is_bounded),
                                        { 0 } });
}
