/* Manifests of deploy/ and examples/ that are embedded in the program, so that `flyball install`
 * and `flyball up` need no other files. deploy/embed.py writes the tables; compressed, they take
 * a third of the space. */
#ifndef FLYBALL_MANIFESTS_H
#define FLYBALL_MANIFESTS_H

#include "../base/buf.h"
#include "../base/err.h"
#include "../json/json.h"

struct manifest {
    const char *name;            /* of the file; NULL ends a table */
    const unsigned char *packed; /* gzip of its YAML */
    size_t packed_bytes;
};

extern const struct manifest manifests_crds[];
extern const struct manifest manifests_shapes[];   /* CRDs of other projects, for `flyball up` */
extern const struct manifest manifests_doors[];    /* of `install --scaler --external-metrics` */
extern const struct manifest manifests_install[];  /* namespace, roles, workloads, monitors */
extern const struct manifest manifests_examples[]; /* scenarios of `flyball up` */

void manifest_text(const struct manifest *m, struct buf *out);
/* Parses the documents into an array in the arena. */
int manifest_read(const struct manifest *m, struct arena *a, struct json **ret, err_t *e);

#endif
