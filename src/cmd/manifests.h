/* Manifests of deploy/ that are part of the program, so that `flyball install` and `flyball up` need no
 * files beside it. deploy/embed.py writes the tables. */
#ifndef FLYBALL_MANIFESTS_H
#define FLYBALL_MANIFESTS_H

struct manifest {
    const char *name; /* of the file; NULL ends a table */
    const char *text; /* YAML */
};

extern const struct manifest manifests_crds[];
extern const struct manifest manifests_shapes[];   /* kinds of others, for where they are not */
extern const struct manifest manifests_install[];  /* namespace, roles, workloads, monitors */
extern const struct manifest manifests_examples[]; /* scenarios of `flyball up` */

#endif
