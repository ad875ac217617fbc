/* SelfSubjectAccessReview and its relatives: checks what a review asks for. http/review.c answers it. A review
 * is never stored, so its metadata must be empty, apart from the namespace of a LocalSubjectAccessReview, which
 * must agree with the one it asks about. */
#include "kind_hooks.h"

/* Exactly one of resourceAttributes and nonResourceAttributes must be set. */
static void validate_access(const struct kind_change *c, struct kind_env *env UNUSED,
                            struct field_errors *errors)
{
    struct field_path at = { NULL, .key = S("spec") };
    const struct json *spec = json_get(c->object, "spec");
    const struct json *resource = json_get(spec, "resourceAttributes"),
                      *path = json_get(spec, "nonResourceAttributes"),
                      *metadata = json_get(c->object, "metadata"),
                      *ns = json_get(metadata, "namespace");
    if (resource && path)
        field_invalid(errors, AT(&at, "nonResourceAttributes"), path,
                      "cannot be specified in combination with resourceAttributes");
    if (!resource && !path)
        field_invalid(errors, AT(&at, "resourceAttributes"), NULL,
                      "exactly one of nonResourceAttributes or resourceAttributes must be "
                      "specified");
    if (!str_starts(c->kind->kind, S("Self")) && !json_text(json_get(spec, "user")).n &&
        !json_len(json_get(spec, "groups")))
        field_invalid(errors, AT(&at, "user"), json_new_str(errors->arena, S("")),
                      "at least one of user or group must be specified");
    if (json_len(metadata) > (ns ? 1 : 0))
        field_invalid(errors, AT(NULL, "metadata"), metadata, "must be empty");
    const struct json *resource_ns = json_get(resource, "namespace");
    if (ns && resource && !str_eq(json_text(resource_ns), json_text(ns)))
        field_invalid(errors, AT(AT(&at, "resourceAttributes"), "namespace"),
                      resource_ns ? resource_ns : json_new_str(errors->arena, S("")),
                      "must match metadata.namespace");
    if (ns && path)
        field_invalid(errors, AT(&at, "nonResourceAttributes"), path,
                      "disallowed on this kind of request");
}

const struct kind_hooks kind_hooks_access_review = { .validate = validate_access };
