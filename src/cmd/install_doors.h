/* `flyball install --scaler --external-metrics`: what the doors need beside the usual manifests. */
#ifndef FLYBALL_CMD_INSTALL_DOORS_H
#define FLYBALL_CMD_INSTALL_DOORS_H

#include "../json/json.h"

struct install_doors {
    bool scaler, external_metrics;
    str ca, cert, key; /* PEM, in the arena of install_doors_init() */
};

/* Creates the certificates, for the Services in that namespace. */
int install_doors_init(struct arena *a, const char *ns, struct install_doors *d, err_t *e);

/* Adds flags, ports and the certificate to the operator's Deployment; other objects stay. */
void install_doors_extend(struct arena *a, const struct install_doors *d, struct json *object);
/* Sets the CA of an APIService; keeps a namespace that must not be replaced. */
void install_doors_finish(struct arena *a, const struct install_doors *d, const char *ns,
                          struct json *object);
/* The Secret with the certificate. */
struct json *install_doors_secret(struct arena *a, const struct install_doors *d, const char *ns);

#endif
