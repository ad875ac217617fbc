#include "tap.h"
#include "test_json.h"

#include "apiserver/kinds/cron_line.h"
#include "apiserver/kinds/kinds.h"

static const struct kind *kind(const char *group, const char *version, const char *plural)
{
    const struct kind *k = kinds_find(str_c(group), str_c(version), str_c(plural));
    OK(k != NULL);
    return k;
}

static bool service_holds(void *context UNUSED, str text)
{
    return str_eqc(text, "\"clusterIP\":\"10.96.7.7\"");
}

/* The errors of a write, "path:Reason ..." in the order found; "" if it would be stored. */
static str write_sub(struct arena *a, const struct kind *k, enum kind_sub sub, struct json *object,
                     const struct json *old)
{
    struct kind_env env = { .arena = a, .service_holds = service_holds };
    struct kind_change change = { k, sub, object, old };
    struct kind_fault fault;
    err_t e;
    if (kind_decode(k, a, object, NULL, &e) < 0)
        return arena_str(a, str_c(e.text));
    kind_prepare(&change, &env, &fault);
    if (!fault.code)
        kind_validate(&change, &env, &fault);
    auto_buf struct buf text = { 0 };
    for (size_t i = 0; i < fault.errors.n; i++)
        buf_printf(&text, "%s" STR_FMT ":%s", i ? " " : "", STR_ARG(fault.errors.at[i].path),
                   field_reason_word(fault.errors.at[i].reason) + strlen("FieldValue"));
    if (fault.code && !fault.errors.n)
        buf_printf(&text, "%d", fault.code);
    return arena_str(a, buf_str(&text));
}

static str create(struct arena *a, const struct kind *k, struct json *object)
{
    return write_sub(a, k, KIND_MAIN, object, NULL);
}

static void the_table_is_complete(void)
{
    size_t n = 0;
    const struct kind *const *all = kinds_builtin(&n);
    OK(n >= 19);
    for (size_t i = 0; i < n; i++) {
        const struct kind *k = all[i];
        OK(k->schema && k->storage && k->columns && k->n_columns >= 2 && k->cells);
        OK(str_ends(k->list_kind, S("List")));
        for (uint32_t j = 0; j < k->n_selectable; j++)
            OK(kind_field_known(k, k->selectable[j].label));
    }
    const struct kind *v1 = kind("autoscaling", "v1", "horizontalpodautoscalers");
    OK(v1->storage == kind("autoscaling", "v2", "horizontalpodautoscalers"));
    OK(kind("events.k8s.io", "v1", "events")->storage == kind("", "v1", "events"));
    OK(!kinds_find(S("apps"), S("v2"), S("deployments")));
}

static void empty_values_are_omitted_or_kept_as_in_go(void)
{
    auto_arena struct arena a = { 0 };
    struct json *pod = test_json_quoted(
        &a, "{'metadata':{'name':'p','labels':{},'creationTimestamp':null},'spec':{'hostNetwork':"
            "false,'containers':[{'name':'c','image':'i:1','args':[],'env':[{'name':'A','value':''"
            "}],'resources':{'requests':{'cpu':0.5,'memory':'1024Mi'}}}],'nodeSelector':null}}");
    err_t e;
    OK_CALL(kind_decode(kind("", "v1", "pods"), &a, pod, NULL, &e), &e);
    OK(!json_at(pod, "metadata", "labels", NULL));
    OK(!json_at(pod, "spec", "hostNetwork", NULL));
    OK(!json_at(pod, "spec", "nodeSelector", NULL));
    const struct json *c = json_item(json_at(pod, "spec", "containers", NULL), 0);
    OK(!json_get(c, "args"));
    OK(!json_get(json_item(json_get(c, "env"), 0), "value"));
    EQ_STR(json_text(json_at(c, "resources", "requests", "cpu", NULL)), S("500m"));
    EQ_STR(json_text(json_at(c, "resources", "requests", "memory", NULL)), S("1Gi"));
    EQ_STR(json_text(json_at(pod, "apiVersion", NULL)), S("v1"));
    OK(json_is(json_get(pod, "status"), JSON_OBJ));
}

static void wrong_types_and_unknown_fields_are_reported(void)
{
    static const struct {
        const char *group, *plural, *body, *want;
    } t[] = {
        { "", "configmaps", "{'data':{'k':1}}", "data.k: expected a string, got integer" },
        { "", "configmaps", "{'metadata':'x'}", "metadata: expected an object, got string" },
        { "apps", "deployments", "{'spec':{'replicas':1.5}}",
          "spec.replicas: expected an integer, got number" },
        { "apps", "deployments", "{'spec':{'replicas':3000000000}}",
          "spec.replicas: expected an integer of 32 bits, got integer" },
        { "", "secrets", "{'data':{'k':'not base64'}}",
          "data.k: expected base64 text, got string" },
        { "", "pods", "{'spec':{'containers':{}}}",
          "spec.containers: expected an array, got object" },
        { "", "services", "{'spec':{'ports':[{'targetPort':true}]}}",
          "spec.ports[0].targetPort: expected an integer of 32 bits or a string, got boolean" },
    };
    auto_arena struct arena a = { 0 };
    for (size_t i = 0; i < countof(t); i++) {
        err_t e = { 0 };
        int failed = kind_decode(kind(t[i].group, "v1", t[i].plural), &a,
                                 test_json_quoted(&a, t[i].body), NULL, &e);
        EQ_INT(failed, -EINVAL);
        EQ_STR(str_c(e.text), str_c(t[i].want));
    }
    struct schema_unknown unknown = { .arena = &a };
    struct json *object =
        test_json_quoted(&a, "{'metadata':{'name':'a','bogus':1},'Data':{},'data':{'x':'y'}}");
    err_t e;
    OK_CALL(kind_decode(kind("", "v1", "configmaps"), &a, object, &unknown, &e), &e);
    if (EQ_INT(unknown.n, 2)) {
        EQ_STR(unknown.paths[0], S("metadata.bogus"));
        EQ_STR(unknown.paths[1], S("Data"));
    }
    OK(!json_get(object, "Data") && json_get(object, "data"));
}

static void metadata_is_checked(void)
{
    static const struct {
        const char *metadata, *want;
    } t[] = {
        { "{'name':'a'}", "" },
        { "{}", "metadata.name:Required" },
        { "{'name':'A_b'}", "metadata.name:Invalid" },
        { "{'name':'a','generateName':'-x'}", "metadata.generateName:Invalid" },
        { "{'name':'a','labels':{'-x':'y','ok':'no!'}}",
          "metadata.labels:Invalid metadata.labels:Invalid" },
        { "{'name':'a','annotations':{'a/b/c':'v','Upper.Case/X':'v'}}",
          "metadata.annotations:Invalid" },
        { "{'name':'a','finalizers':['bare']}", "metadata.finalizers[0]:Invalid" },
        { "{'name':'a','finalizers':['orphan','foregroundDeletion']}",
          "metadata.finalizers:Invalid" },
        { "{'name':'a','ownerReferences':[{'apiVersion':'v1','kind':'Pod','name':'p'}]}",
          "metadata.ownerReferences[0].uid:Required" },
    };
    auto_arena struct arena a = { 0 };
    for (size_t i = 0; i < countof(t); i++) {
        struct json *object = json_new_obj(&a);
        json_set(&a, object, S("metadata"), test_json_quoted(&a, t[i].metadata));
        EQ_STR(create(&a, kind("", "v1", "configmaps"), object), str_c(t[i].want));
    }
    const struct kind *k = kind("coordination.k8s.io", "v1", "leases");
    struct json *old = test_json_quoted(&a, "{'metadata':{'name':'a','uid':'1','deletionTimestamp':"
                                            "'2020-01-01T00:00:00Z'}}");
    struct json *new =
        test_json_quoted(&a, "{'metadata':{'name':'a','uid':'2','finalizers':['x.y/z'],"
                             "'deletionTimestamp':'2020-01-01T00:00:00Z'}}");
    EQ_STR(write_sub(&a, k, KIND_MAIN, new, old),
           S("metadata.uid:Invalid metadata.finalizers:Forbidden metadata.uid:Invalid "
             "metadata.finalizers:Forbidden"));
}

static void pods_are_admitted(void)
{
    auto_arena struct arena a = { 0 };
    const struct kind *k = kind("", "v1", "pods");
    struct json *pod =
        test_json_quoted(&a, "{'metadata':{'name':'p','namespace':'n'},'spec':{'containers':[{"
                             "'name':'c','image':'i','resources':{'limits':{'cpu':'1','memory'"
                             ":'1Gi'}}}]}}");
    EQ_STR(create(&a, k, pod), S(""));
    EQ_STR(json_text(json_at(pod, "status", "qosClass", NULL)), S("Guaranteed"));
    EQ_STR(json_text(json_at(pod, "status", "phase", NULL)), S("Pending"));
    EQ_STR(json_text(json_at(pod, "spec", "serviceAccountName", NULL)), S("default"));
    EQ_INT(json_len(json_at(pod, "spec", "tolerations", NULL)), 2);
    EQ_INT(json_int(json_at(pod, "metadata", "generation", NULL), 0), 1);
    const struct json *c = json_item(json_at(pod, "spec", "containers", NULL), 0);
    EQ_STR(json_text(json_get(c, "imagePullPolicy")), S("Always"));
    EQ_STR(json_text(json_at(c, "resources", "requests", "cpu", NULL)), S("1"));

    struct json *update = json_copy(&a, pod);
    struct json *container = json_item(json_at(update, "spec", "containers", NULL), 0);
    json_set_str(&a, container, "image", S("i:2"));
    EQ_STR(write_sub(&a, k, KIND_MAIN, update, pod), S(""));
    EQ_INT(json_int(json_at(update, "metadata", "generation", NULL), 0), 2);
    json_set_str(&a, container, "workingDir", S("/x"));
    EQ_STR(write_sub(&a, k, KIND_MAIN, update, pod), S("spec:Forbidden"));

    static const struct {
        const char *spec, *want;
    } bad[] = {
        { "{'containers':[]}", "spec.containers:Required" },
        { "{'containers':[{'image':'i'}]}", "spec.containers[0].name:Required" },
        { "{'containers':[{'name':'c','image':'i','imagePullPolicy':'Maybe'}]}",
          "spec.containers[0].imagePullPolicy:NotSupported" },
        { "{'containers':[{'name':'c','image':'i'},{'name':'c','image':'i'}]}",
          "spec.containers[1].name:Duplicate" },
        { "{'containers':[{'name':'c','image':'i','ports':[{'containerPort':70000}]}]}",
          "spec.containers[0].ports[0].containerPort:Invalid" },
        { "{'containers':[{'name':'c','image':'i','volumeMounts':[{'name':'v','mountPath':'/v'}]}]}",
          "spec.containers[0].volumeMounts[0].name:NotFound" },
        { "{'containers':[{'name':'c','image':'i','resources':{'requests':{'cpu':'2'},'limits':"
          "{'cpu':'1'}}}]}",
          "spec.containers[0].resources.requests:Invalid" },
        { "{'restartPolicy':'Sometimes','containers':[{'name':'c','image':'i'}]}",
          "spec.restartPolicy:NotSupported" },
    };
    for (size_t i = 0; i < countof(bad); i++) {
        struct json *object = test_json_quoted(&a, "{'metadata':{'name':'p'}}");
        json_set(&a, object, S("spec"), test_json_quoted(&a, bad[i].spec));
        EQ_STR(create(&a, k, object), str_c(bad[i].want));
    }
}

/* One violation per rule that a .types table can declare. */
static void field_local_rules_are_checked(void)
{
    static const struct {
        const char *group, *version, *plural, *object, *want;
    } t[] = {
        { "", "v1", "pods",
          "{'metadata':{'name':'p'},'spec':{'hostname':'Bad.','activeDeadlineSeconds':0,'containers':[{"
          "'name':'c','image':'i','env':[{'name':''},{'name':'a=b'}],'ports':[{'containerPort':0},{"
          "'containerPort':70000}],'readinessProbe':{'tcpSocket':{'port':0}}}],'securityContext':{"
          "'supplementalGroups':[1,-1],'sysctls':[{'name':'a.b','value':'1'},{'name':'a.b','value':'1'},"
          "{'name':'A','value':'1'}]}}}",
          "spec.containers[0].ports[0].containerPort:Required "
          "spec.containers[0].ports[1].containerPort:Invalid spec.containers[0].env[0].name:Required "
          "spec.containers[0].env[1].name:Invalid "
          "spec.containers[0].readinessProbe.tcpSocket.port:Invalid "
          "spec.activeDeadlineSeconds:Invalid "
          "spec.securityContext.supplementalGroups[1]:Invalid "
          "spec.securityContext.sysctls[1].name:Duplicate "
          "spec.securityContext.sysctls[2].name:Invalid spec.hostname:Invalid" },
        { "", "v1", "configmaps", "{'metadata':{'name':'c'},'data':{'a b':'1','ok':'2'}}",
          "data[a b]:Invalid" },
        { "", "v1", "services",
          "{'metadata':{'name':'s'},'spec':{'ipFamilies':['IPv5'],'ports':[{'port':80,'targetPort':"
          "'no_name'}]}}",
          "spec.ports[0].targetPort:Invalid spec.ipFamilies[0]:NotSupported" },
        { "coordination.k8s.io", "v1", "leases",
          "{'metadata':{'name':'l'},'spec':{'leaseDurationSeconds':0,'leaseTransitions':-1}}",
          "spec.leaseDurationSeconds:Invalid spec.leaseTransitions:Invalid" },
        { "autoscaling", "v1", "horizontalpodautoscalers",
          "{'metadata':{'name':'h'},'spec':{'scaleTargetRef':{'apiVersion':'apps/v1','kind':"
          "'Deployment','name':'d'},'minReplicas':-1,'maxReplicas':0}}",
          "spec.minReplicas:Invalid spec.maxReplicas:Required" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        auto_arena struct arena a = { 0 };
        EQ_STR(create(&a, kind(t[i].group, t[i].version, t[i].plural),
                      test_json_quoted(&a, t[i].object)),
               str_c(t[i].want));
    }
    auto_arena struct arena a = { 0 };
    const struct kind *secrets = kind("", "v1", "secrets");
    struct json *old = test_json_quoted(&a, "{'metadata':{'name':'s'},'type':'Opaque'}");
    struct json *new = test_json_quoted(&a, "{'metadata':{'name':'s'},'type':'x'}");
    EQ_STR(create(&a, secrets, old), S(""));
    EQ_STR(write_sub(&a, secrets, KIND_MAIN, new, old), S("type:Invalid"));
}

static void status_and_spec_stay_apart(void)
{
    auto_arena struct arena a = { 0 };
    const struct kind *k = kind("apps", "v1", "deployments");
    static const char body[] =
        "{'metadata':{'name':'d','labels':{'l':'1'}},'spec':{'replicas':2,'selector':{'matchLabels'"
        ":{'a':'b'}},'template':{'metadata':{'labels':{'a':'b'}},'spec':{'containers':[{'name':'c',"
        "'image':'i'}]}}},'status':{'replicas':9}}";
    struct json *d = test_json_quoted(&a, body);
    EQ_STR(create(&a, k, d), S(""));
    OK(!json_at(d, "status", "replicas", NULL));
    struct json *update = test_json_quoted(&a, body);
    json_set_int(&a, json_get(update, "spec"), "replicas", 5);
    EQ_STR(write_sub(&a, k, KIND_STATUS, update, d), S(""));
    EQ_INT(json_int(json_at(update, "spec", "replicas", NULL), 0), 2);
    EQ_INT(json_int(json_at(update, "status", "replicas", NULL), 0), 9);
    EQ_INT(json_int(json_at(update, "metadata", "generation", NULL), 0), 1);
    struct json *selector = test_json_quoted(&a, body);
    json_set_str(&a, json_at(selector, "spec", "selector", "matchLabels", NULL), "a", S("c"));
    EQ_STR(write_sub(&a, k, KIND_MAIN, selector, d),
           S("spec.template.metadata.labels:Invalid spec.selector:Invalid"));
    struct json *annotated = json_copy(&a, d);
    json_set_str(&a, json_make(&a, annotated, "metadata", "annotations", NULL), "x", S("y"));
    EQ_STR(write_sub(&a, k, KIND_MAIN, annotated, d), S(""));
    EQ_INT(json_int(json_at(annotated, "metadata", "generation", NULL), 0), 2);
}

static void services_get_addresses(void)
{
    auto_arena struct arena a = { 0 };
    const struct kind *k = kind("", "v1", "services");
    struct json *s =
        test_json_quoted(&a, "{'metadata':{'name':'s','uid':'u'},'spec':{'ports':[{'port':80}]}}");
    EQ_STR(create(&a, k, s), S(""));
    str ip = json_text(json_at(s, "spec", "clusterIP", NULL));
    OK(str_starts(ip, S("10.96.")));
    EQ_STR(json_to_str(&a, json_at(s, "spec", "ports", NULL)),
           S("[{\"port\":80,\"targetPort\":80,\"protocol\":\"TCP\"}]"));
    struct json *again =
        test_json_quoted(&a, "{'metadata':{'name':'s','uid':'u'},'spec':{'ports':[{'port':81"
                             "}]}}");
    EQ_STR(write_sub(&a, k, KIND_MAIN, again, s), S(""));
    EQ_STR(json_text(json_at(again, "spec", "clusterIP", NULL)), ip);
    static const struct {
        const char *spec, *want;
    } t[] = {
        { "{}", "spec.ports:Required" },
        { "{'clusterIP':'None'}", "" },
        { "{'clusterIP':'10.96.7.7','ports':[{'port':80}]}", "spec.clusterIPs:Invalid" },
        { "{'clusterIP':'nonsense','ports':[{'port':80}]}", "spec.clusterIPs[0]:Invalid" },
        { "{'ports':[{'port':70000}]}",
          "spec.ports[0].port:Invalid spec.ports[0].targetPort:Invalid" },
        { "{'ports':[{'port':1},{'port':2}]}",
          "spec.ports[0].name:Required spec.ports[1].name:Required" },
        { "{'type':'Odd','ports':[{'port':80}]}", "spec.type:NotSupported" },
        { "{'type':'ExternalName'}", "spec.externalName:Required" },
        { "{'type':'ExternalName','externalName':'example.com'}", "" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        struct json *object = test_json_quoted(&a, "{'metadata':{'name':'s','uid':'u'}}");
        json_set(&a, object, S("spec"), test_json_quoted(&a, t[i].spec));
        EQ_STR(create(&a, k, object), str_c(t[i].want));
    }
}

static void version_one_autoscalers_convert(void)
{
    auto_arena struct arena a = { 0 };
    const struct kind *v1 = kind("autoscaling", "v1", "horizontalpodautoscalers");
    struct json *hpa = test_json_quoted(
        &a,
        "{'metadata':{'name':'h'},'spec':{'scaleTargetRef':{'apiVersion':'apps/v1','kind':'Deployment','name':'d'},"
        "'maxReplicas':5,'targetCPUUtilizationPercentage':60}}");
    EQ_STR(create(&a, v1, hpa), S(""));
    kind_to_storage(v1, &a, hpa);
    EQ_STR(json_text(json_get(hpa, "apiVersion")), S("autoscaling/v2"));
    const struct json *metric = json_item(json_at(hpa, "spec", "metrics", NULL), 0);
    EQ_INT(json_int(json_at(metric, "resource", "target", "averageUtilization", NULL), 0), 60);
    struct json *behavior = test_json_quoted(&a, "{'scaleDown':{'stabilizationWindowSeconds':60}}");
    json_set(&a, json_get(hpa, "spec"), S("behavior"), behavior);
    struct json *stored = json_copy(&a, hpa);
    kind_from_storage(v1, &a, hpa);
    EQ_STR(json_text(json_get(hpa, "apiVersion")), S("autoscaling/v1"));
    EQ_INT(json_int(json_at(hpa, "spec", "targetCPUUtilizationPercentage", NULL), 0), 60);
    OK(!json_at(hpa, "spec", "behavior", NULL));
    kind_to_storage(v1, &a, hpa); /* back again, nothing lost */
    OK(json_at(hpa, "spec", "behavior", "scaleDown", NULL) &&
       json_eq(json_at(hpa, "spec", "metrics", NULL), json_at(stored, "spec", "metrics", NULL)));
    struct json *bad = test_json_quoted(
        &a,
        "{'metadata':{'name':'h'},'spec':{'scaleTargetRef':{'apiVersion':'apps/v1','kind':'Deployment','name':'d'},"
        "'minReplicas':5,'maxReplicas':3,'targetCPUUtilizationPercentage':60}}");
    EQ_STR(create(&a, v1, bad), S("spec.maxReplicas:Invalid"));
}

static void scales_are_read_and_written(void)
{
    auto_arena struct arena a = { 0 };
    const struct kind *k = kind("apps", "v1", "deployments");
    struct json *d =
        test_json_quoted(&a, "{'metadata':{'name':'d','uid':'u'},'spec':{'replicas':3,'selector':"
                             "{'matchLabels':{'b':'2','a':'1'},'matchExpressions':[{'key':'c',"
                             "'operator':'In','values':['z','y']}]}},'status':{'replicas':2}}");
    struct kind_fault fault;
    struct json *scale = kind_scale_of(k, &a, d, &fault);
    EQ_INT(json_int(json_at(scale, "spec", "replicas", NULL), 0), 3);
    EQ_INT(json_int(json_at(scale, "status", "replicas", NULL), 0), 2);
    EQ_STR(json_text(json_at(scale, "status", "selector", NULL)), S("a=1,b=2,c in (y,z)"));
    json_set_int(&a, json_get(scale, "spec"), "replicas", 7);
    kind_scale_apply(k, &a, scale, d, &fault);
    EQ_INT(fault.code, 0);
    EQ_INT(json_int(json_at(d, "spec", "replicas", NULL), 0), 7);
    json_set_int(&a, json_get(scale, "spec"), "replicas", -1);
    kind_scale_apply(k, &a, scale, d, &fault);
    EQ_INT(fault.code, 422);
    json_set_int(&a, json_get(d, "spec"), "replicas", 0);
    OK(!json_at(kind_scale_of(k, &a, d, &fault), "spec", "replicas", NULL));
}

/* The texts are those of robfig/cron, which kube-apiserver reports. */
static void cron_lines_are_checked(void)
{
    static const char *const lines[][2] = {
        { "61 * * * *", "end of range (61) above maximum (59): 61" },
        { "* 24 * * *", "end of range (24) above maximum (23): 24" },
        { "* * 0 * *", "beginning of range (0) below minimum (1): 0" },
        { "* * * 13 *", "end of range (13) above maximum (12): 13" },
        { "* * * * 7", "end of range (7) above maximum (6): 7" },
        { "5-2 * * * *", "beginning of range (5) beyond end of range (2): 5-2" },
        { "1-2-3 * * * *", "too many hyphens: 1-2-3" },
        { "*/1/2 * * * *", "too many slashes: */1/2" },
        { "*/0 * * * *", "step of range should be a positive number: */0" },
        { "x * * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax" },
        { "* * * *", "expected exactly 5 fields, found 4: [* * * *]" },
        { "@often", "unrecognized descriptor: @often" },
        { "*/15 0-6,22 1,15 jan-MAR mon-fri", NULL },
        { "5/10 * ? * *", NULL },
        { "@daily", NULL },
        { "@every 1h", NULL },
    };
    for (size_t i = 0; i < countof(lines); i++) {
        err_t e = { .text = "" };
        EQ_INT(cron_line_check(str_c(lines[i][0]), &e), lines[i][1] ? -EINVAL : 0);
        EQ_STR(str_c(e.text), str_c(lines[i][1] ? lines[i][1] : ""));
    }
}

static void fields_can_be_selected(void)
{
    auto_arena struct arena a = { 0 };
    const struct kind *k = kind("", "v1", "pods");
    struct json *pod =
        test_json_quoted(&a, "{'metadata':{'name':'p','namespace':'n'},'spec':{'nodeName':'x'}}");
    str value = S("");
    OK(kind_field_value(k, pod, S("spec.nodeName"), &value));
    EQ_STR(value, S("x"));
    OK(kind_field_value(k, pod, S("spec.hostNetwork"), &value));
    EQ_STR(value, S("false"));
    OK(kind_field_value(k, pod, S("metadata.namespace"), &value));
    EQ_STR(value, S("n"));
    OK(!kind_field_value(k, pod, S("spec.nosuch"), &value));
    OK(!kind_field_known(kind("", "v1", "nodes"), S("metadata.namespace")));
    EQ_INT(kind_grace_seconds(k, pod, -1), 30);
    EQ_INT(kind_grace_seconds(k, pod, 5), 5);
    json_set_str(&a, json_make(&a, pod, "status", NULL), "phase", S("Failed"));
    EQ_INT(kind_grace_seconds(k, pod, -1), 0);
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(the_table_is_complete),
        TAP(empty_values_are_omitted_or_kept_as_in_go),
        TAP(wrong_types_and_unknown_fields_are_reported),
        TAP(metadata_is_checked),
        TAP(pods_are_admitted),
        TAP(field_local_rules_are_checked),
        TAP(status_and_spec_stay_apart),
        TAP(services_get_addresses),
        TAP(version_one_autoscalers_convert),
        TAP(scales_are_read_and_written),
        TAP(cron_lines_are_checked),
        TAP(fields_can_be_selected),
        { 0 },
    });
}
