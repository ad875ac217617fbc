/* AIMClusterModelSource: which images of a registry become models. Pure. */
#ifndef FLYBALL_MODELSOURCE_CORE_H
#define FLYBALL_MODELSOURCE_CORE_H

#include "engine_core.h"

struct aim_modelsource_image {
    str registry, repository, tag;
};

struct aim_modelsource_filter {
    str registry;   /* empty: that of the source */
    str repository; /* may contain "*" */
    str tag;        /* empty: any */
    bool wildcard;
};

struct aim_modelsource_filter aim_modelsource_filter(struct arena *a, str image);

/* Does the image pass the filter (an object of spec.filters)? `versions` are those of the source. */
bool aim_modelsource_matches(struct arena *a, const struct json *filter,
                             const struct json *versions, const struct aim_modelsource_image *image,
                             bool as_original);
/* Is the tag a version that satisfies all constraints (a list)? Unreadable constraints are ignored; "~" and
 * "^" are unreadable to the original. */
bool aim_modelsource_satisfies(str tag, const struct json *constraints, bool as_original);

bool aim_modelsource_is_version(str text); /* an exact one */
/* A constraint of the source or of a filter that cannot be read; empty: none. */
str aim_modelsource_find_unreadable(const struct json *source);

/* The images that are named exactly, so that no registry must be asked: a list of {registry, repository, tag}. */
size_t aim_modelsource_static(struct arena *a, const struct json *source,
                              struct aim_modelsource_image **ret);

/* The same of one filter. */
size_t aim_modelsource_static_of(struct arena *a, const struct json *source,
                                 const struct json *filter, struct aim_modelsource_image **ret);

str aim_modelsource_image_text(struct arena *a, const struct aim_modelsource_image *image);
/* The AIMClusterModel for an image, without an owner. */
struct json *aim_modelsource_model(struct arena *a, const char *group, const struct json *source,
                                   const struct aim_modelsource_image *image);

struct aim_modelsource_facts {
    const struct json *source;
    const str *existing; /* images of the models that the source made */
    size_t existing_n;
    const struct aim_modelsource_image *found; /* by all filters */
    size_t found_n;
    size_t filters, failed; /* that were asked */
    bool as_original;       /* an image that two filters find counts twice */
};

struct aim_modelsource_state {
    struct aim_engine_component components[2];
    struct aim_engine_condition limit; /* MaxModelsLimitReached */
    size_t *creates, creates_n;        /* indices of `found` */
    int64_t available, created;        /* images; models that exist afterwards */
    bool limit_reached;
};

struct aim_modelsource_state aim_modelsource_state(struct arena *a,
                                                   const struct aim_modelsource_facts *f);

#endif
