/* Columns of the built-in kinds: name, type, and whether they show only with `-o wide`. */
#include "table_columns.h"

#define NAME { "Name", "string", "name", "Name of the object, unique in its namespace.", 0, NULL }
#define COLUMN(title, type, description) { title, type, "", description, 0, NULL }
#define WIDE(title, type, description) { title, type, "", description, 1, NULL }
#define AGE COLUMN("Age", "string", "How long ago the object was created.")
#define CONTAINERS WIDE("Containers", "string", "Names of the containers in the template.")
#define IMAGES WIDE("Images", "string", "Images of the containers in the template.")
#define SELECTOR WIDE("Selector", "string", "Labels of the pods that belong to it.")

#define TABLE(kind, fill, ...)                                                                     \
    static const struct kind_column kind##_at[] = { __VA_ARGS__ };                                 \
    const struct table_columns columns_##kind = { kind##_at, countof(kind##_at), fill }

TABLE(plain, cells_plain, NAME, AGE);
TABLE(serviceaccount, cells_plain, NAME, AGE);
TABLE(namespace, cells_namespace, NAME, COLUMN("Status", "string", "Active or Terminating."), AGE);
TABLE(configmap, cells_configmap, NAME, COLUMN("Data", "string", "How many entries it has."), AGE);
TABLE(secret, cells_secret, NAME, COLUMN("Type", "string", "What the entries are for."),
      COLUMN("Data", "string", "How many entries it has."), AGE);
TABLE(lease, cells_lease, NAME, COLUMN("Holder", "string", "Who has it."), AGE);
TABLE(crd, cells_crd, NAME, COLUMN("Scope", "string", "Namespaced or Cluster."),
      COLUMN("Versions", "string", "Its versions, and which one is stored."),
      { "Created At", "date", "", "When the definition was created.", 0, NULL });
TABLE(role, cells_role, NAME, { "Created At", "date", "", "When the role was created.", 0, NULL });
TABLE(binding, cells_binding, NAME, COLUMN("Role", "string", "The role it gives."), AGE,
      WIDE("Users", "string", "Users that have it."),
      WIDE("Groups", "string", "Groups that have it."),
      WIDE("ServiceAccounts", "string", "Accounts that have it, with their namespaces."));
TABLE(node, cells_node, NAME, COLUMN("Status", "string", "Ready or not, schedulable or not."),
      COLUMN("Roles", "string", "Roles from its labels."), AGE,
      COLUMN("Version", "string", "Version of the kubelet."),
      WIDE("Internal-IP", "string", "Address inside the cluster."),
      WIDE("External-IP", "string", "Address outside of the cluster."),
      WIDE("OS-Image", "string", "Operating system."), WIDE("Kernel-Version", "string", "Kernel."),
      WIDE("Container-Runtime", "string", "What runs its containers."));
TABLE(pod, cells_pod, NAME, COLUMN("Ready", "string", "Containers that are ready, of all."),
      COLUMN("Status", "string", "Where the pod is in its life."),
      COLUMN("Restarts", "string", "Restarts of all its containers."), AGE,
      WIDE("IP", "string", "Address of the pod."), WIDE("Node", "string", "Where it runs."),
      WIDE("Nominated Node", "string", "Where it may run after a preemption."),
      WIDE("Readiness Gates", "string", "Gates that are open, of all."));
TABLE(service, cells_service, NAME, COLUMN("Type", "string", "How the service is reached."),
      COLUMN("Cluster-IP", "string", "Its address in the cluster."),
      COLUMN("External-IP", "string", "Its addresses outside."),
      COLUMN("Port(s)", "string", "Ports and protocols."), AGE, SELECTOR);
TABLE(event, cells_event, COLUMN("Last Seen", "string", "When it happened last."),
      COLUMN("Type", "string", "Normal or Warning."),
      COLUMN("Reason", "string", "What happened, in a word."),
      COLUMN("Object", "string", "What it happened to."),
      WIDE("Subobject", "string", "Which part of it."), WIDE("Source", "string", "Who says so."),
      COLUMN("Message", "string", "What happened, in a sentence."),
      WIDE("First Seen", "string", "When it happened first."),
      WIDE("Count", "string", "How often it happened."),
      { "Name", "string", "name", "Name of the event.", 1, NULL });
TABLE(pvc, cells_pvc, NAME, COLUMN("Status", "string", "Pending, Bound or Lost."),
      COLUMN("Volume", "string", "The volume it is bound to."),
      COLUMN("Capacity", "string", "How much it has."),
      COLUMN("Access Modes", "string", "How it may be mounted."),
      COLUMN("StorageClass", "string", "Class of the storage."),
      COLUMN("VolumeAttributesClass", "string", "Class of its attributes."), AGE,
      WIDE("VolumeMode", "string", "File system or block device."));
TABLE(deployment, cells_deployment, NAME, COLUMN("Ready", "string", "Pods that are ready, of all."),
      COLUMN("Up-to-date", "string", "Pods of the newest template."),
      COLUMN("Available", "string", "Pods that have been ready long enough."), AGE, CONTAINERS,
      IMAGES, SELECTOR);
TABLE(replicaset, cells_replicaset, NAME, COLUMN("Desired", "integer", "Pods that are wanted."),
      COLUMN("Current", "integer", "Pods that there are."),
      COLUMN("Ready", "integer", "Pods that are ready."), AGE, CONTAINERS, IMAGES, SELECTOR);
TABLE(scale, cells_scale, COLUMN("Name", "string", "Name of the object that is scaled."),
      COLUMN("Desired", "integer", "Pods that are wanted."),
      COLUMN("Available", "integer", "Pods that there are."), AGE);
TABLE(statefulset, cells_statefulset, NAME,
      COLUMN("Ready", "string", "Pods that are ready, of all."), AGE, CONTAINERS, IMAGES);
TABLE(daemonset, cells_daemonset, NAME,
      COLUMN("Desired", "integer", "Nodes that should run its pod."),
      COLUMN("Current", "integer", "Nodes that run it."),
      COLUMN("Ready", "integer", "Nodes where it is ready."),
      COLUMN("Up-to-date", "integer", "Nodes with the newest template."),
      COLUMN("Available", "integer", "Nodes where it has been ready long enough."),
      COLUMN("Node Selector", "string", "Labels of its nodes."), AGE, CONTAINERS, IMAGES, SELECTOR);
TABLE(job, cells_job, NAME, COLUMN("Status", "string", "Where the job is in its life."),
      COLUMN("Completions", "string", "Pods that succeeded, of all."),
      COLUMN("Duration", "string", "How long it took, or takes."), AGE, CONTAINERS, IMAGES,
      SELECTOR);
TABLE(hpa, cells_hpa, NAME, COLUMN("Reference", "string", "What it scales."),
      COLUMN("Targets", "string", "Its metrics: now and wanted."),
      COLUMN("MinPods", "string", "Fewest pods."), COLUMN("MaxPods", "string", "Most pods."),
      COLUMN("Replicas", "string", "Pods that there are."), AGE);
