#!/usr/bin/python3
"""make.py: writes the dashboards beside it, overview.json and one file per feature.

A panel is a title, a unit and queries with their legends; the layout follows from the order. Edit here, run the script, and
commit what it writes: test/integration/observability.py compares the two and looks for every metric in a running flyball.
"""
import json
import pathlib

FOLDER = pathlib.Path(__file__).parent
WIDTH, HEIGHT, COLUMNS = 8, 7, 3


def query(expression, legend=""):
    return {"expr": expression, "legend": legend}


DASHBOARDS = {
    "overview": ("flyball / Overview", [
        ("Reconciles per second", "ops", [query("sum by (controller) (rate(controller_runtime_reconcile_total[5m]))",
                                                "{{controller}}")]),
        ("Reconcile errors per second", "ops",
         [query("sum by (controller) (rate(controller_runtime_reconcile_errors_total[5m]))", "{{controller}}")]),
        ("Reconcile time, 99th percentile", "s",
         [query("histogram_quantile(0.99, sum by (le, controller) "
                "(rate(controller_runtime_reconcile_time_seconds_bucket[5m])))", "{{controller}}")]),
        ("Requests to the API server per second", "reqps",
         [query("sum by (method, code) (rate(rest_client_requests_total[5m]))", "{{method}} {{code}}")]),
        ("Latency of the API server, 99th percentile", "s",
         [query("histogram_quantile(0.99, sum by (le, verb) (rate(rest_client_request_duration_seconds_bucket[5m])))",
                "{{verb}}")]),
        ("Queue depth", "short", [query("sum by (name) (workqueue_depth)", "{{name}}")]),
        ("Objects in caches", "short", [query("sum by (resource) (flyball_cache_objects)", "{{resource}}")]),
        ("Watch failures per second", "ops",
         [query("sum by (resource) (rate(flyball_watch_failures_total[5m]))", "{{resource}}")]),
        ("Memory", "bytes", [query("process_resident_memory_bytes{job=~\".*flyball.*\"}", "{{pod}}")]),
        ("CPU", "percentunit", [query("rate(process_cpu_seconds_total{job=~\".*flyball.*\"}[5m])", "{{pod}}")]),
        ("Leader", "short", [query("leader_election_master_status", "{{pod}}")]),
        ("Settings replaced by their last good value", "short",
         [query("flyball_config_fallback", "{{map}}/{{key}}")]),
    ]),
    "saturation": ("flyball / Model replicas", [
        ("Desired replicas", "short", [query("wva_desired_replicas{namespace=~\"$namespace\"}", "{{variant_name}}")]),
        ("Current replicas", "short", [query("wva_current_replicas{namespace=~\"$namespace\"}", "{{variant_name}}")]),
        ("Desired over current", "percentunit",
         [query("wva_desired_ratio{namespace=~\"$namespace\"}", "{{variant_name}}")]),
        ("Scaling decisions per hour", "short",
         [query("sum by (variant_name, direction, reason) "
                "(increase(wva_replica_scaling_total{namespace=~\"$namespace\"}[1h]))",
                "{{variant_name}} {{direction}} ({{reason}})")]),
        ("Models", "short", [query("saturation_models")]),
        ("Cycle time, 99th percentile", "s",
         [query("histogram_quantile(0.99, sum by (le) (rate(saturation_cycle_seconds_bucket[5m])))")]),
        ("Outcomes of cycles per minute", "short",
         [query("sum by (outcome) (increase(saturation_decisions_total[1m]))", "{{outcome}}")]),
    ]),
    "schedule": ("flyball / Schedules", [
        ("Bounds in force", "short",
         [query("smarthpa_effective_replicas{namespace=~\"$namespace\"}", "{{namespace}}/{{name}} {{bound}}")]),
        ("Active triggers", "short",
         [query("smarthpa_active_triggers{namespace=~\"$namespace\"}", "{{namespace}}/{{name}}")]),
        ("Time to the next change", "s",
         [query("smarthpa_next_transition_timestamp_seconds{namespace=~\"$namespace\"} - time()",
                "{{namespace}}/{{name}}")]),
        ("Changes applied per hour", "short",
         [query("sum by (namespace, name) (increase(smarthpa_trigger_applied_total{namespace=~\"$namespace\"}[1h]))",
                "{{namespace}}/{{name}}")]),
        ("Failed updates per hour", "short", [query("sum(increase(smarthpa_hpa_update_failures_total[1h]))")]),
        ("Bounds that others changed, per hour", "short",
         [query("sum(increase(smarthpa_drift_corrections_total[1h]))")]),
    ]),
    "market": ("flyball / CPU of pods", [
        ("CPU allocated", "short",
         [query("sum by (namespace, pod) (mbcas_pod_cpu_allocation_millicores{namespace=~\"$namespace\"})",
                "{{namespace}}/{{pod}}")]),
        ("CPU used", "short",
         [query("sum by (namespace, pod) (mbcas_pod_cpu_usage_millicores{namespace=~\"$namespace\"})",
                "{{namespace}}/{{pod}}")]),
        ("Throttling", "percentunit",
         [query("mbcas_throttling_ratio{namespace=~\"$namespace\"}", "{{namespace}}/{{pod}}")]),
        ("Price of CPU", "short", [query("mbcas_nash_shadow_price", "{{node}}")]),
        ("Pods in the market", "short", [query("mbcas_managed_pods", "{{node}}")]),
        ("Capacity", "short", [query("mbcas_capacity_millicores", "{{node}}")]),
        ("Changes per minute", "short", [query("sum(increase(mbcas_allocation_changes_total[1m]))")]),
        ("Refused resizes per minute", "short", [query("sum(increase(mbcas_controller_pod_patch_errors_total[1m]))")]),
        ("Resizes in force per minute", "short",
         [query("sum(increase(mbcas_controller_resize_verified_total[1m]))")]),
    ]),
    "services": ("flyball / Model services", [
        ("Services by status", "short", [query("aim_service_status", "{{status}}")]),
        ("Route conflicts", "short", [query("sum(aim_route_conflicts)")]),
        ("Consumers of each configuration", "short",
         [query("aim_runtimeconfig_consumers", "{{scope}} {{namespace}}/{{name}}")]),
        ("Configurations resolved per minute", "short",
         [query("sum by (kind, outcome) (increase(aim_runtimeconfig_resolutions_total[1m]))",
                "{{kind}} {{outcome}}")]),
        ("Paths rendered per minute", "short",
         [query("sum by (result) (increase(aim_path_render_total[1m]))", "{{result}}")]),
    ]),
}


def make_panel(number, panel):
    title, unit, queries = panel
    source = {"type": "prometheus", "uid": "${datasource}"}
    return {"id": number + 1, "title": title, "type": "timeseries", "datasource": source,
            "gridPos": {"x": number % COLUMNS * WIDTH, "y": number // COLUMNS * HEIGHT, "w": WIDTH, "h": HEIGHT},
            "fieldConfig": {"defaults": {"unit": unit, "min": 0, "custom": {"fillOpacity": 10}}, "overrides": []},
            "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
            "targets": [{"refId": chr(ord("A") + i), "datasource": source, "expr": q["expr"],
                         "legendFormat": q["legend"] or "__auto"} for i, q in enumerate(queries)]}


def make_variables(panels):
    variables = [{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}]
    filtered = [q["expr"] for panel in panels for q in panel[2] if "$namespace" in q["expr"]]
    if filtered:
        metric = filtered[0].split("{")[0].split("(")[-1]
        variables.append({"name": "namespace", "type": "query", "label": "Namespace", "includeAll": True,
                          "multi": True, "allValue": ".*", "refresh": 2, "current": {"text": "All", "value": "$__all"},
                          "datasource": {"type": "prometheus", "uid": "${datasource}"},
                          "query": f"label_values({metric}, namespace)"})
    return variables


def make_dashboard(name):
    title, panels = DASHBOARDS[name]
    return {"uid": f"flyball-{name}", "title": title, "tags": ["flyball"], "schemaVersion": 39, "editable": True,
            "refresh": "30s", "time": {"from": "now-6h", "to": "now"}, "timezone": "browser",
            "templating": {"list": make_variables(panels)},
            "panels": [make_panel(i, panel) for i, panel in enumerate(panels)]}


def text(name):
    return json.dumps(make_dashboard(name), indent=1) + "\n"


if __name__ == "__main__":
    for each in DASHBOARDS:
        (FOLDER / f"{each}.json").write_text(text(each))
