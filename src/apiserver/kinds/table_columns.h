/* The columns of the built-in kinds as data (table_columns.c), and what fills them (table_cells.c). */
#ifndef FLYBALL_APISERVER_TABLE_COLUMNS_H
#define FLYBALL_APISERVER_TABLE_COLUMNS_H

#include "kinds.h"

typedef void table_cells_fn(struct arena *a, const struct json *object, int64_t now_ns,
                            struct json *cells);

struct table_columns {
    const struct kind_column *at;
    uint32_t n;
    table_cells_fn *cells;
};

extern const struct table_columns columns_plain, columns_namespace, columns_node, columns_pod,
    columns_configmap, columns_secret, columns_serviceaccount, columns_service, columns_event,
    columns_pvc, columns_deployment, columns_replicaset, columns_statefulset, columns_daemonset,
    columns_job, columns_hpa, columns_scale, columns_lease, columns_crd, columns_role,
    columns_binding;

table_cells_fn cells_plain, cells_namespace, cells_node, cells_pod, cells_configmap, cells_secret,
    cells_service, cells_event, cells_pvc, cells_deployment, cells_replicaset, cells_statefulset,
    cells_daemonset, cells_job, cells_hpa, cells_scale, cells_lease, cells_crd, cells_role,
    cells_binding;

/* ---- shared by the cells */

void cell_text(struct arena *a, struct json *cells, str text);
void cell_or(struct arena *a, struct json *cells, str text, const char *otherwise); /* when "" */
void cell_int(struct arena *a, struct json *cells, int64_t value);
str cell_age(struct arena *a, const struct json *instant, int64_t now_ns); /* "<unknown>" */

#endif
