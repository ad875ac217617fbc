/* See grant.h. Two inputs decide: an annotation with a list of namespaces, and ReferenceGrants. Both fail closed: an
 * empty list, an empty namespace or a field of the wrong type permits nothing. */
#include "grant.h"

static const struct field from_fields[] = {
    { "group", F_WORD, offsetof(struct grant_from, group) },
    { "kind", F_WORD, offsetof(struct grant_from, kind) },
    { "namespace", F_WORD, offsetof(struct grant_from, ns) },
};

static const struct field to_fields[] = {
    { "group", F_WORD, offsetof(struct grant_to, group) },
    { "kind", F_WORD, offsetof(struct grant_to, kind) },
    { "name", F_STR, offsetof(struct grant_to, name) },
    { "name", F_HAS, offsetof(struct grant_to, has_name) },
};

static const struct fields from_kept = { sizeof(struct grant_from), from_fields,
                                         countof(from_fields) },
                           to_kept = { sizeof(struct grant_to), to_fields, countof(to_fields) };

static const struct field record_fields[] = {
    { "spec.from", F_LIST, offsetof(struct grant_record, from), .of = &from_kept },
    { "spec.to", F_LIST, offsetof(struct grant_record, to), .of = &to_kept },
    { "metadata.deletionTimestamp", F_HAS, offsetof(struct grant_record, deleting) },
};

static const struct field home_fields[] = {
    { "metadata.annotations[\"" GRANT_ANNOTATION "\"]", F_STR,
      offsetof(struct grant_home_record, allow) },
};

const struct fields grant_fields = { sizeof(struct grant_record), record_fields,
                                     countof(record_fields) };
const struct fields grant_home_fields = { sizeof(struct grant_home_record), home_fields,
                                          countof(home_fields) };

bool grant_list_has(str list, str ns)
{
    str part;
    if (!ns.n || !list.n)
        return false;
    while (str_cut(&list, ',', &part)) {
        part = str_trim(part);
        if (str_eq(part, ns) || str_eqc(part, "*"))
            return true;
    }
    return false;
}

/* spec.from: group, kind and namespace must all match; there are no wildcards. */
static bool names_referrer(const struct grant_record *grant, const struct grant_reference *ref)
{
    for (size_t i = 0; i < grant->from.n; i++) {
        const struct grant_from *f = &grant->from.at[i];
        if (f->ns.n && str_eq(f->ns, ref->from_ns) && str_eq(f->kind, ref->from_kind) &&
            str_eq(f->group, ref->from_group))
            return true;
    }
    return false;
}

/* A name that is not a string matches nothing. */
static bool names_target(const struct grant_record *grant, const struct grant_reference *ref)
{
    for (size_t i = 0; i < grant->to.n; i++) {
        const struct grant_to *t = &grant->to.at[i];
        if (str_eq(t->kind, ref->to_kind) && str_eq(t->group, ref->to_group) &&
            (!t->has_name || (t->name.n && str_eq(t->name, ref->to_name))))
            return true;
    }
    return false;
}

bool grant_permits(const struct grant_record *grant, const struct grant_reference *ref)
{
    return grant && !grant->deleting && str_eq(grant->meta.ns, ref->to_ns) &&
           names_referrer(grant, ref) && names_target(grant, ref);
}

bool grant_concerns(const struct grant_record *old, const struct grant_record *now,
                    const struct grant_reference *ref)
{
    return grant_permits(old, ref) != grant_permits(now, ref);
}

bool grant_home_concerns(const struct grant_home_record *old, const struct grant_home_record *now,
                         const struct grant_reference *ref)
{
    const struct grant_home_record *any = now ? now : old;
    return any && str_eq(any->meta.name, ref->to_ns) &&
           grant_list_has(old ? old->allow : S(""), ref->from_ns) !=
               grant_list_has(now ? now->allow : S(""), ref->from_ns);
}

str grant_refusal(struct arena *a, const struct grant_reference *ref)
{
    return arena_printf(a,
                        STR_FMT " " STR_FMT "/" STR_FMT
                                " does not permit references from namespace \"" STR_FMT
                                "\"; annotate it or namespace \"" STR_FMT
                                "\" with " GRANT_ANNOTATION "=" STR_FMT
                                ", or create a ReferenceGrant there",
                        STR_ARG(ref->to_kind), STR_ARG(ref->to_ns), STR_ARG(ref->to_name),
                        STR_ARG(ref->from_ns), STR_ARG(ref->to_ns), STR_ARG(ref->from_ns));
}
