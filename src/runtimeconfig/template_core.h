/* Which template a service uses if it names none: the best of its model's templates that are ready and whose GPU some
 * node has.
 *
 * The order is fixed: templates of the namespace before those of the cluster, then GPU, metric and precision as listed
 * in template_core.c. If two are equal in all of it, only the user can choose. Pure: candidates in, a choice and its
 * reason out. */
#ifndef FLYBALL_TEMPLATE_CORE_H
#define FLYBALL_TEMPLATE_CORE_H

#include "../json/json.h"

struct aim_template_candidate {
    str name, ns;                     /* ns empty: cluster-scoped */
    str gpu_model, metric, precision; /* empty: unset */
    bool ready;
    bool derived;      /* created from another one by overrides: never chosen */
    bool lacks_memory; /* no node has a GPU with as much as it needs */
};

enum aim_template_choice {
    TEMPLATE_CHOSEN,
    TEMPLATE_NONE,      /* the model has no template */
    TEMPLATE_NOT_READY, /* none is usable yet */
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

/* One line per candidate: the chosen one is marked, the others have a reason. */
void aim_template_report(struct buf *out, const struct aim_template_selection *s,
                         const struct aim_template_candidate *candidates, size_t n,
                         const struct json *gpus);

/* Adds the GPUs in the labels of a node to the list, without duplicates. */
void aim_template_gpus_of_node(struct arena *a, const struct json *labels, struct json *gpus);
bool aim_template_has_gpu(const struct json *gpus, str gpu_model); /* true for an empty one */

/* A candidate from an AIM(Cluster)ServiceTemplate; its status takes precedence over its spec. */
struct aim_template_candidate aim_template_candidate_of(struct arena *a, const char *group,
                                                        const struct json *template);

/* Sets `lacks_memory` of its candidate. */
void aim_template_check_memory(struct arena *a, struct aim_template_candidate *c,
                               const struct json *template, const struct json *gpus);

/* The memory of the GPUs by model, as aim_discovery_gpu() reads it. */
struct json *aim_template_memory_of(struct arena *a, const struct json *gpus);

/* ---- the state of a template itself */

/* Why a template is in its state, as far as its conditions differ. */
enum aim_template_situation {
    TEMPLATE_SITUATION_OTHER, /* all conditions have the reason and the message of the state */
    TEMPLATE_INLINE,
    TEMPLATE_NO_GPU,
    TEMPLATE_NO_IMAGE,
    TEMPLATE_PULL_ERROR,
    TEMPLATE_JOB_NEW,
    TEMPLATE_JOB_RUNNING,
    TEMPLATE_JOB_FAILED,
    TEMPLATE_JOB_DONE,
    TEMPLATE_SITUATION_N
};

struct aim_template_state {
    const char *status; /* Pending, Progressing, NotAvailable, Ready, Degraded, Failed */
    const char *reason;
    str message;
    enum aim_template_situation situation;
    const struct json *sources; /* its model sources; NULL: unknown */
    const struct json *profile; /* its profile; NULL: unknown */
};

/* What discovery knows, for a template without sources of its own. */
enum aim_template_discovery {
    TEMPLATE_UNDISCOVERED, /* and nothing is under way, as far as is known */
    TEMPLATE_DISCOVERING,
    TEMPLATE_DISCOVERED,
    TEMPLATE_DISCOVERY_STUCK,  /* its pod cannot pull the image */
    TEMPLATE_DISCOVERY_FAILED, /* tried again later */
};

struct aim_template_facts {
    const struct json *object;
    bool config_missing;
    str config_message;
    const struct json *model; /* NULL: not found */
    bool foreign_runtime;     /* the ServingRuntime of its name has another owner */
    const struct json *gpus;  /* of the nodes */
    enum aim_template_discovery discovery;
    const char *discovery_reason;
    str discovery_message;
    const struct json *discovered_sources, *discovered_profile; /* if TEMPLATE_DISCOVERED */
};

/* A template with model sources in its spec is ready as soon as its configuration exists; one without them is when
 * discovery (template_discovery.c) has found them. */
struct aim_template_state aim_template_state(struct arena *a,
                                             const struct aim_template_facts *facts);

/* The conditions Discovered, Progressing, Ready and Failure of a template in this state. */
enum { TEMPLATE_CONDITIONS = 4 };

struct aim_template_condition {
    const char *type;
    bool holds;
    const char *reason;
    str message;
};

void aim_template_conditions(const struct aim_template_state *state,
                             struct aim_template_condition ret[TEMPLATE_CONDITIONS]);

/* GPU model and count in a template's spec, under either name of these fields. */
str aim_template_gpu_model(const struct json *spec);     /* "": any, or none */
int64_t aim_template_gpu_count(const struct json *spec); /* 0: unset */
str aim_template_memory(const struct json *spec);        /* the least of a GPU; "": any */
str aim_template_gpu_resource(const struct json *spec);  /* amd.com/gpu by default */

/* The spec with its GPU under the newer name, which discovery_core.h reads. */
struct json *aim_template_normal_spec(struct arena *a, const struct json *spec);

/* The spec in the form of a discovered profile. */
struct json *aim_template_profile(struct arena *a, const struct json *spec);

#endif
