/* Which template a service runs with when it names none: the best of its model's templates that are ready
 * and whose GPU some node has.
 *
 * The order is fixed: templates of the namespace before those of the cluster, then GPU, metric and
 * precision as listed in template_core.c. Two that are equal in all of it are a tie, which only the user can
 * break. Pure: candidates in, a choice and its reason out. */
#ifndef FLYBALL_TEMPLATE_CORE_H
#define FLYBALL_TEMPLATE_CORE_H

#include "../json/json.h"

struct aim_template_candidate {
    str name, ns;                     /* ns empty: of the cluster */
    str gpu_model, metric, precision; /* empty: not said */
    bool ready;
    bool derived; /* made from another by overrides: never chosen */
};

enum aim_template_choice {
    TEMPLATE_CHOSEN,
    TEMPLATE_NONE,      /* the model has no template */
    TEMPLATE_NOT_READY, /* none can be used yet */
    TEMPLATE_AMBIGUOUS,
    TEMPLATE_CHOICE_N
};

struct aim_template_selection {
    enum aim_template_choice choice;
    const struct aim_template_candidate *chosen; /* NULL unless CHOSEN */
    const char *reason;                          /* of the condition; "" when CHOSEN */
    str message;                                 /* one sentence; "" when CHOSEN */
};

/* `gpus` are the GPUs of the nodes, as aim_template_gpus_of_node() names them. */
struct aim_template_selection aim_template_select(struct arena *a, str model,
                                                  const struct aim_template_candidate *candidates,
                                                  size_t n, const struct json *gpus);

/* What keeps a candidate from being chosen at all, in a few words; NULL: nothing. */
const char *aim_template_obstacle(const struct aim_template_candidate *c, const struct json *gpus);

/* One line a candidate: the chosen one is marked, the others say what stands against them. */
void aim_template_report(struct buf *out, const struct aim_template_selection *s,
                         const struct aim_template_candidate *candidates, size_t n,
                         const struct json *gpus);

/* Appends what the labels of a node say of its GPUs to the list of texts, each once. */
void aim_template_gpus_of_node(struct arena *a, const struct json *labels, struct json *gpus);
bool aim_template_has_gpu(const struct json *gpus, str gpu_model); /* an empty one always is */

/* A candidate from an AIM(Cluster)ServiceTemplate; what its status found out precedes its spec. */
struct aim_template_candidate aim_template_candidate_of(struct arena *a, const char *group,
                                                        const struct json *template);

/* ---- the state of a template itself */

struct aim_template_state {
    const char *status; /* Pending, Progressing, NotAvailable, Ready, Degraded, Failed */
    const char *reason;
    str message;
    const struct json *sources; /* its model sources; NULL: none are known */
    const struct json *profile; /* its profile; NULL: none is known */
};

struct aim_template_facts {
    const struct json *object;
    bool config_missing;
    str config_message;
    bool model_found;
    const struct json *gpus; /* of the nodes */
};

/* A template whose sources are written in its spec is ready as soon as its configuration is known; one
 * that has to be discovered waits. */
struct aim_template_state aim_template_state(struct arena *a,
                                             const struct aim_template_facts *facts);

/* Which GPU and how many a template's spec asks for, under either of the names of these fields. */
str aim_template_gpu_model(const struct json *spec);     /* "": any, or none */
int64_t aim_template_gpu_count(const struct json *spec); /* 0: not said */

/* What the spec says in the shape of a discovered profile. */
struct json *aim_template_profile(struct arena *a, const struct json *spec);

#endif
