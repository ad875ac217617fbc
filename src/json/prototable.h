/* Which field of a protobuf message has which name and type in JSON: what is needed to read objects of built-in kinds
 * in the encoding that Kubernetes stores and sends fastest. Plain constant data; src/kube has the table, generated from
 * the .types files that the embedded API server reads.
 *
 *     const struct prototable_message *pod = prototable_find(&kube_types, "", "v1", "Pod");
 *     const struct prototable_field *spec = prototable_member(&kube_types, pod, S("spec"));
 *
 * The fields of a message are in the order in which kube-apiserver writes them as JSON, which is not that of their
 * numbers. A message that has a field which cannot be read here is not `complete`: its other fields can be
 * read, the message as a whole cannot. */
#ifndef FLYBALL_PROTOTABLE_H
#define FLYBALL_PROTOTABLE_H

#include "../base/str.h"

enum prototable_type {
    PROTO_STRING,
    PROTO_BYTES, /* base64 in JSON */
    PROTO_INT32,
    PROTO_INT64,
    PROTO_BOOL,
    PROTO_QUANTITY,      /* the types from here on are messages on the wire */
    PROTO_TIME,          /* whole seconds in JSON */
    PROTO_MICRO_TIME,    /* six digits in JSON */
    PROTO_INT_OR_STRING, /* a number or a string in JSON */
    PROTO_MESSAGE,
};

enum { /* bits of prototable_field.flags; without one, a zero or empty value is not written to JSON */
       PROTO_LIST = 1,
       PROTO_MAP = 2,    /* from text to the type */
       PROTO_IF_SET = 4, /* written if it was set, even to zero */
       PROTO_ALWAYS = 8, /* always written */
};

struct prototable_field {
    uint16_t name; /* offset in `names` */
    uint8_t number, type, flags;
    uint8_t message; /* PROTO_MESSAGE: index */
};

struct prototable_message {
    uint16_t first; /* index of its first field */
    uint8_t n;
    bool complete; /* and everything in it */
};

struct prototable_kind {
    const char *group, *version, *kind;
    uint8_t message;
};

struct prototable {
    const char *names; /* texts that end with NUL */
    const struct prototable_field *fields;
    const struct prototable_message *messages;
    const struct prototable_kind *kinds;
    size_t n_kinds;
};

/* NULL: the table does not have this kind. */
const struct prototable_message *prototable_find(const struct prototable *t, const char *group,
                                                 const char *version, const char *kind);
/* The field of a message; NULL: none. */
const struct prototable_field *prototable_member(const struct prototable *t,
                                                 const struct prototable_message *m, str name);

static inline str prototable_name(const struct prototable *t, const struct prototable_field *f)
{
    return str_c(t->names + f->name);
}

#endif
