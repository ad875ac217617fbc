/* Columns of the kinds in types/more.types and types/cluster.types, and the plans of their cells: see table_more.c. */
#include "table_columns.h"

/* Columns as text: "Title:type" separated by bars, string unless given, with a star before those of -o wide. Name and Age
 * are the usual ones. Text is a third of the size of the tables that kinds.c makes of it. */
#define TABLE(kind, plan, text)                                                                    \
    static void fill_##kind(struct arena *a, const struct json *object, int64_t now_ns,            \
                            struct json *cells)                                                    \
    {                                                                                              \
        table_fill_plan(a, object, now_ns, cells, plan);                                           \
    }                                                                                              \
    const struct table_columns table_columns_##kind = { .cells = fill_##kind, .columns = text }

#define TEMPLATE "spec.jobTemplate.spec."
TABLE(
    cronjob,
    "name spec.schedule spec.timeZone|<none> $truth:spec.suspend $count:status.active "
    "$time:status.lastScheduleTime age $names:" TEMPLATE "template.spec.containers "
    "$images:" TEMPLATE "template.spec.containers $selector:" TEMPLATE "selector",
    "Name|Schedule|Timezone|Suspend:boolean|Active:integer|Last Schedule|Age|*Containers|*Images|*Selector");
TABLE(ingress,
      "name spec.ingressClassName|<none> $hosts:spec.rules $addresses:status.loadBalancer.ingress "
      "$tlsports:spec.tls age",
      "Name|Class|Hosts|Address|Ports|Age");
TABLE(ingressclass, "name spec.controller $parameters:spec.parameters age",
      "Name|Controller|Parameters|Age");
TABLE(networkpolicy, "name $selector:spec.podSelector age", "Name|Pod-Selector|Age");
TABLE(
    pv,
    "name spec.capacity.storage $modes:spec.accessModes spec.persistentVolumeReclaimPolicy "
    "$phase:status.phase $claim:spec.claimRef spec.storageClassName "
    "spec.volumeAttributesClassName|<unset> status.reason age spec.volumeMode|<unset>",
    "Name|Capacity|Access Modes|Reclaim Policy|Status|Claim|StorageClass|VolumeAttributesClass|Reason|Age|*VolumeMode");
TABLE(podtemplate,
      "name $names:template.spec.containers $images:template.spec.containers "
      "$labels:template.metadata.labels",
      "Name|Containers|Images|Pod Labels");
TABLE(rc,
      "name $int:spec.replicas $int:status.replicas $int:status.readyReplicas age "
      "$names:spec.template.spec.containers $images:spec.template.spec.containers "
      "$labels:spec.selector",
      "Name|Desired:integer|Current:integer|Ready:integer|Age|*Containers|*Images|*Selector");
TABLE(storageclass,
      "$defaultname:metadata.name provisioner reclaimPolicy|Delete volumeBindingMode|<unset> "
      "$bool:allowVolumeExpansion age",
      "Name|Provisioner|ReclaimPolicy|VolumeBindingMode|AllowVolumeExpansion|Age");
TABLE(
    csidriver,
    "name $bool:spec.attachRequired $bool:spec.podInfoOnMount $bool:spec.storageCapacity "
    "$audiences:spec.tokenRequests $bool:spec.requiresRepublish $list:spec.volumeLifecycleModes "
    "age",
    "Name|AttachRequired:boolean|PodInfoOnMount:boolean|StorageCapacity:boolean|TokenRequests|RequiresRepublish:boolean|Modes|Age");
TABLE(csinode, "name $count:spec.drivers age", "Name|Drivers:integer|Age");
TABLE(endpointslice, "name addressType $ports:ports $endpoints:endpoints age",
      "Name|AddressType|Ports|Endpoints|Age");
TABLE(revision, "name $owner:metadata.ownerReferences $int:revision age",
      "Name|Controller|Revision|Age");
TABLE(resourceclaim, "name $state:status age", "Name|State|Age");
TABLE(resourceslice, "name spec.nodeName spec.driver spec.pool.name age",
      "Name|Node|Driver|Pool|Age");
TABLE(pdb,
      "name $orna:spec.minAvailable $orna:spec.maxUnavailable $int:status.disruptionsAllowed age",
      "Name|Min Available|Max Unavailable|Allowed Disruptions:integer|Age");
TABLE(quota, "name $requests:status $limits:status age", "Name|Request|Limit|Age");
TABLE(endpoints, "name $subsets:subsets age", "Name|Endpoints|Age");
TABLE(priorityclass, "name $int:value $bool:globalDefault age preemptionPolicy",
      "Name|Value:integer|Global-Default:boolean|Age|PreemptionPolicy");
TABLE(runtimeclass, "name handler age", "Name|Handler|Age");
#define QUEUING "spec.limited.limitResponse.queuing."
TABLE(prioritylevel,
      "name spec.type spec.limited.nominalConcurrencyShares|<none> " QUEUING
      "queues|<none> " QUEUING "handSize|<none> " QUEUING "queueLengthLimit|<none> age",
      "Name|Type|NominalConcurrencyShares|Queues|HandSize|QueueLengthLimit|Age");
TABLE(flowschema,
      "name spec.priorityLevelConfiguration.name $int:spec.matchingPrecedence "
      "spec.distinguisherMethod.type|<none> age $dangling:status.conditions",
      "Name|PriorityLevel|MatchingPrecedence|DistinguisherMethod|Age|MissingPL");
TABLE(csr,
      "name age spec.signerName|<none> spec.username $duration:spec.expirationSeconds $csr:status",
      "Name|Age|SignerName|Requestor|RequestedDuration|Condition");
TABLE(apiservice, "name $service:spec.service $available:status.conditions age",
      "Name|Service|Available|Age");
TABLE(policy, "name $count:spec.validations $paramkind:spec.paramKind age",
      "Name|Validations:integer|ParamKind|Age");
TABLE(mutating_policy, "name $count:spec.mutations $paramkind:spec.paramKind age",
      "Name|Mutations:integer|ParamKind|Age");
TABLE(policy_binding, "name spec.policyName $paramref:spec.paramRef age",
      "Name|PolicyName|ParamRef|Age");
TABLE(volumeattachment,
      "name spec.attacher spec.source.persistentVolumeName spec.nodeName $bool:status.attached age",
      "Name|Attacher|PV|Node|Attached:boolean|Age");
TABLE(ipaddress, "name $parent:spec.parentRef age", "Name|ParentRef|Age");
TABLE(servicecidr, "name $list:spec.cidrs age", "Name|CIDRs|Age");
TABLE(component, "name status message error", "Name|Status|Message|Error");
