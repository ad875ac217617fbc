/* The columns of the built-in kinds (table_columns.c) and the functions that fill their cells. */
#ifndef FLYBALL_APISERVER_TABLE_COLUMNS_H
#define FLYBALL_APISERVER_TABLE_COLUMNS_H

#include "kinds.h"

typedef void table_cells_fn(struct arena *a, const struct json *object, int64_t now_ns,
                            struct json *cells);

struct table_columns {
    const struct kind_column *at;
    uint32_t n;
    table_cells_fn *cells;
    const char *columns; /* instead of `at`: see table_more.c */
};

extern const struct table_columns table_columns_plain, table_columns_namespace, table_columns_node,
    table_columns_pod, table_columns_configmap, table_columns_webhooks, table_columns_secret,
    table_columns_serviceaccount, table_columns_service, table_columns_event, table_columns_pvc,
    table_columns_deployment, table_columns_replicaset, table_columns_statefulset,
    table_columns_daemonset, table_columns_job, table_columns_hpa, table_columns_scale,
    table_columns_lease, table_columns_crd, table_columns_role, table_columns_binding;

/* table_more.c */
extern const struct table_columns table_columns_cronjob, table_columns_ingress,
    table_columns_ingressclass, table_columns_networkpolicy, table_columns_pv,
    table_columns_podtemplate, table_columns_rc, table_columns_storageclass,
    table_columns_csidriver, table_columns_csinode, table_columns_endpointslice,
    table_columns_revision, table_columns_resourceclaim, table_columns_resourceslice,
    table_columns_pdb, table_columns_quota, table_columns_endpoints, table_columns_priorityclass,
    table_columns_runtimeclass, table_columns_prioritylevel, table_columns_flowschema,
    table_columns_csr, table_columns_apiservice, table_columns_policy,
    table_columns_mutating_policy, table_columns_policy_binding, table_columns_volumeattachment,
    table_columns_ipaddress, table_columns_servicecidr, table_columns_component;

table_cells_fn table_cells_plain, table_cells_namespace, table_cells_node, table_cells_pod,
    table_cells_configmap, table_cells_secret, table_cells_service, table_cells_event,
    table_cells_pvc, table_cells_deployment, table_cells_replicaset, table_cells_statefulset,
    table_cells_daemonset, table_cells_job, table_cells_hpa, table_cells_scale, table_cells_lease,
    table_cells_crd, table_cells_role, table_cells_binding;

/* ---- shared by the cells */

/* Appends one cell for each word of a plan (table_more.c). */
void table_fill_plan(struct arena *a, const struct json *object, int64_t now_ns, struct json *cells,
                     const char *plan);

void table_cell_text(struct arena *a, struct json *cells, str text);
void table_cell_text_or(struct arena *a, struct json *cells, str text,
                        const char *otherwise); /* when "" */
void table_cell_int(struct arena *a, struct json *cells, int64_t value);
str table_access_modes(struct arena *a, const struct json *modes);               /* "RWO,ROX" */
str table_cell_age(struct arena *a, const struct json *instant, int64_t now_ns); /* "<unknown>" */

#endif
