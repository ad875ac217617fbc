/* Variants without a VariantAutoscaling: HPAs and ScaledObjects with the annotation
 * `llm-d.ai/managed: "true"` (or that label) describe the variant themselves, by annotations for its
 * model and cost and by their own bounds and scale target. */
#ifndef FLYBALL_ANNOTATION_CORE_H
#define FLYBALL_ANNOTATION_CORE_H

#include "../../base/arena.h"

enum annotation_kind { /* in order of precedence for one workload */
                       ANNOTATION_HPA,
                       ANNOTATION_SCALEDOBJECT,
                       ANNOTATION_VARIANT, /* a VariantAutoscaling */
};

struct annotation_object { /* what is read of an HPA or a ScaledObject */
    enum annotation_kind kind;
    str ns, name;
    str managed, managed_label; /* llm-d.ai/managed */
    str model, cost;            /* llm-d.ai/model-id, llm-d.ai/variant-cost */
    bool child;                 /* an HPA that KEDA controls, to which it copies annotations */
    bool deleting;
    str target_api, target_kind, target;
    bool has_min, has_max;
    int64_t min, max;
};

struct annotation_variant {
    enum annotation_kind kind;
    str ns, name, model;
    str cost_text;
    double cost;
    str target_api, target_kind, target;
    bool has_min;
    int64_t min, max;
    str duplicate_of; /* the object that describes the same workload instead; "": this one counts */
};

/* WVA ignores the label, takes a cost of NaN or Inf, and of two HPAs for one workload the one that
 * was listed last. */
enum annotation_rules { ANNOTATION_OURS, ANNOTATION_WVA };

bool annotation_is_managed(const struct annotation_object *o, enum annotation_rules rules);
/* -ENOENT: not managed, or a child or deleting; -EINVAL: invalid, with WVA's messages. */
int annotation_read(const struct annotation_object *o, enum annotation_rules rules,
                    struct annotation_variant *ret, err_t *e);

/* Decides which of the variants count: sets `duplicate_of`. */
void annotation_choose(struct annotation_variant *variants, size_t n, enum annotation_rules rules);

/* A number as Go's strconv.ParseFloat reads it, including hexadecimal ones, NaN and Inf. -EINVAL or
 * -ERANGE. */
int annotation_parse_number(str text, double *ret);

#endif
