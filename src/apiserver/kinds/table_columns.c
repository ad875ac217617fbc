/* Columns of the built-in kinds: title, type, description, and whether they are shown only with -o wide.
 *
 * TABLE(kind, function, columns...) defines table_columns_KIND. Titles and types are those of kube-apiserver,
 * because kubectl prints the titles and scripts parse them; descriptions are our own. */
#include "table_columns.h"

#define NAME                                                                                       \
    { "Name", "string", "name", "Name of the object, unique within its namespace.", 0, NULL }
#define COLUMN(title, type, description) { title, type, "", description, 0, NULL }
#define WIDE(title, type, description) { title, type, "", description, 1, NULL }
#define AGE COLUMN("Age", "string", "Time since the object was created.")
#define CONTAINERS WIDE("Containers", "string", "Names of the containers in the template.")
#define IMAGES WIDE("Images", "string", "Images of the containers in the template.")
#define SELECTOR WIDE("Selector", "string", "Labels of the selected pods.")

#define TABLE(kind, fill, ...)                                                                     \
    static const struct kind_column kind##_at[] = { __VA_ARGS__ };                                 \
    const struct table_columns table_columns_##kind = { kind##_at, countof(kind##_at), fill }

TABLE(plain, table_cells_plain, NAME, AGE);
TABLE(serviceaccount, table_cells_plain, NAME, AGE);
TABLE(namespace, table_cells_namespace, NAME, COLUMN("Status", "string", "Active or Terminating."),
      AGE);
TABLE(configmap, table_cells_configmap, NAME, COLUMN("Data", "string", "Number of entries."), AGE);
TABLE(webhooks, table_cells_configmap, NAME,
      COLUMN("Webhooks", "integer", "Number of webhooks in the configuration."), AGE);
TABLE(secret, table_cells_secret, NAME, COLUMN("Type", "string", "Type of the secret."),
      COLUMN("Data", "string", "Number of entries."), AGE);
TABLE(lease, table_cells_lease, NAME, COLUMN("Holder", "string", "Identity of the current holder."),
      AGE);
TABLE(crd, table_cells_crd, NAME, COLUMN("Scope", "string", "Namespaced or Cluster."),
      COLUMN("Versions", "string", "Served versions; the stored one is marked."),
      { "Created At", "date", "", "When the definition was created.", 0, NULL });
TABLE(role, table_cells_role, NAME,
      { "Created At", "date", "", "When the role was created.", 0, NULL });
TABLE(binding, table_cells_binding, NAME, COLUMN("Role", "string", "Role that is granted."), AGE,
      WIDE("Users", "string", "Users that the role is granted to."),
      WIDE("Groups", "string", "Groups that the role is granted to."),
      WIDE("ServiceAccounts", "string",
           "Service accounts that the role is granted to, with their namespaces."));
TABLE(node, table_cells_node, NAME,
      COLUMN("Status", "string", "Ready or NotReady, and whether scheduling is disabled."),
      COLUMN("Roles", "string", "Roles of the node, from its labels."), AGE,
      COLUMN("Version", "string", "Version of the kubelet."),
      WIDE("Internal-IP", "string", "Address of the node inside the cluster."),
      WIDE("External-IP", "string", "Address of the node outside the cluster."),
      WIDE("OS-Image", "string", "Operating system."),
      WIDE("Kernel-Version", "string", "Kernel version."),
      WIDE("Container-Runtime", "string", "Container runtime and its version."));
TABLE(pod, table_cells_pod, NAME,
      COLUMN("Ready", "string", "Ready containers out of all containers."),
      COLUMN("Status", "string", "Phase of the pod, or the reason why it is not running."),
      COLUMN("Restarts", "string", "Total number of container restarts."), AGE,
      WIDE("IP", "string", "IP address of the pod."),
      WIDE("Node", "string", "Node that the pod is bound to."),
      WIDE("Nominated Node", "string", "Node that the pod may run on after a preemption."),
      WIDE("Readiness Gates", "string", "Passed readiness gates out of all."));
TABLE(service, table_cells_service, NAME,
      COLUMN("Type", "string", "ClusterIP, NodePort, LoadBalancer or ExternalName."),
      COLUMN("Cluster-IP", "string", "Address inside the cluster."),
      COLUMN("External-IP", "string", "Addresses outside the cluster."),
      COLUMN("Port(s)", "string", "Ports and protocols."), AGE, SELECTOR);
TABLE(event, table_cells_event, COLUMN("Last Seen", "string", "Time of the last occurrence."),
      COLUMN("Type", "string", "Normal or Warning."),
      COLUMN("Reason", "string", "Short, machine-readable reason."),
      COLUMN("Object", "string", "Object that the event is about."),
      WIDE("Subobject", "string", "Part of the object that the event is about."),
      WIDE("Source", "string", "Component that reported the event."),
      COLUMN("Message", "string", "Description of the event."),
      WIDE("First Seen", "string", "Time of the first occurrence."),
      WIDE("Count", "string", "Number of occurrences."),
      { "Name", "string", "name", "Name of the event.", 1, NULL });
TABLE(pvc, table_cells_pvc, NAME, COLUMN("Status", "string", "Pending, Bound or Lost."),
      COLUMN("Volume", "string", "Volume that the claim is bound to."),
      COLUMN("Capacity", "string", "Capacity of the volume."),
      COLUMN("Access Modes", "string", "Ways in which the volume can be mounted."),
      COLUMN("StorageClass", "string", "Name of the StorageClass."),
      COLUMN("VolumeAttributesClass", "string", "Name of the VolumeAttributesClass."), AGE,
      WIDE("VolumeMode", "string", "File system or block device."));
TABLE(deployment, table_cells_deployment, NAME,
      COLUMN("Ready", "string", "Ready pods out of the desired ones."),
      COLUMN("Up-to-date", "string", "Pods with the current template."),
      COLUMN("Available", "string", "Pods that have been ready for minReadySeconds."), AGE,
      CONTAINERS, IMAGES, SELECTOR);
TABLE(replicaset, table_cells_replicaset, NAME,
      COLUMN("Desired", "integer", "Desired number of pods."),
      COLUMN("Current", "integer", "Current number of pods."),
      COLUMN("Ready", "integer", "Pods that are ready."), AGE, CONTAINERS, IMAGES, SELECTOR);
TABLE(scale, table_cells_scale, COLUMN("Name", "string", "Name of the object that is scaled."),
      COLUMN("Desired", "integer", "Desired number of pods."),
      COLUMN("Available", "integer", "Current number of pods."), AGE);
TABLE(statefulset, table_cells_statefulset, NAME,
      COLUMN("Ready", "string", "Ready pods out of the desired ones."), AGE, CONTAINERS, IMAGES);
TABLE(daemonset, table_cells_daemonset, NAME,
      COLUMN("Desired", "integer", "Nodes that should run the pod."),
      COLUMN("Current", "integer", "Nodes that run the pod."),
      COLUMN("Ready", "integer", "Nodes on which the pod is ready."),
      COLUMN("Up-to-date", "integer", "Nodes that run the current template."),
      COLUMN("Available", "integer", "Nodes on which the pod has been ready for minReadySeconds."),
      COLUMN("Node Selector", "string", "Labels that a node must have."), AGE, CONTAINERS, IMAGES,
      SELECTOR);
TABLE(job, table_cells_job, NAME,
      COLUMN("Status", "string", "Running, Suspended, Complete or Failed."),
      COLUMN("Completions", "string", "Succeeded pods out of the completions."),
      COLUMN("Duration", "string", "Time from start to completion, or until now."), AGE, CONTAINERS,
      IMAGES, SELECTOR);
TABLE(hpa, table_cells_hpa, NAME, COLUMN("Reference", "string", "Workload that is scaled."),
      COLUMN("Targets", "string", "Current and target value of each metric."),
      COLUMN("MinPods", "string", "Lower bound of the replicas."),
      COLUMN("MaxPods", "string", "Upper bound of the replicas."),
      COLUMN("Replicas", "string", "Current number of pods."), AGE);
