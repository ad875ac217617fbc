#!/usr/bin/python3
"""Schedules as a user sees them: kubectl, an API server, an operator, and real minutes.

    schedule.py FLYBALL                     on the embedded API server
    schedule.py FLYBALL --cluster DIR       on the control plane that test/kube/cluster started in DIR

Speaks TAP. Skipped where there is no kubectl; the case with a history where there is no Prometheus.
"""
import json
import pathlib
import shutil
import subprocess
import threading
import time

import harness
from harness import Skip, TOP, free_port, until

EVERY_DAY = "SUN,M,TU,W,TH,F,SAT"
DEFINITION = TOP / "deploy/crds/autoscaling.sarabala.io_smarthorizontalpodautoscalers.yaml"


class Late(Exception):
    """The machine was too slow to be in place before the boundary: once more, with more time."""


class World(harness.World):
    FEATURE = "schedule"

    def bounds(self, name):
        spec = self.get("hpa", name).get("spec", {})
        return spec.get("minReplicas"), spec.get("maxReplicas")

    def prepare(self):
        self.define(DEFINITION)
        self.run_operator()


def hpa(name):
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name},
            "spec": {"minReplicas": 2, "maxReplicas": 9,
                     "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}}}


def clock(at):
    return time.strftime("%H:%M:%S", time.gmtime(at))


def far_from_midnight(seconds):
    """Windows of a case begin and end on one day, or its bounds would have a past."""
    left = 86400 - time.time() % 86400
    if left < seconds:
        time.sleep(left + 1)


def open_window():
    """From and until when: now lies in it."""
    now = int(time.time())
    return max(now - 600, now - now % 86400), now + 3600


def in_time(case, world):
    """Runs a case that must have things in place some seconds from now."""
    for lead in (10, 30, 90):
        try:
            return case(world, lead, "-%d" % lead)
        except Late:
            print("# more than %d s were needed: once more" % lead, flush=True)
    raise RuntimeError("this machine needs more than 90 s to apply two objects")


def before(instant):
    if time.time() >= instant:
        raise Late


def trigger(name, start, end, inside, after, priority=0):
    end = min(end, start - start % 86400 + 86399)
    def config(pair):
        return {"minReplicas": pair[0], "maxReplicas": pair[1]}
    return {"name": name, "priority": priority, "timezone": "UTC", "interval": {"recurring": EVERY_DAY},
            "startTime": clock(start), "endTime": clock(end), "startHPAConfig": config(inside),
            "endHPAConfig": config(after)}


def schedule(name, *triggers, **more):
    return {"apiVersion": "autoscaling.sarabala.io/v1alpha1", "kind": "SmartHorizontalPodAutoscaler",
            "metadata": {"name": name}, "spec": {"HPAObjectRef": {"name": name}, "triggers": list(triggers),
                                                 **more}}


class Bounds:
    """Every change of bounds that the server reports, in order."""

    COLUMNS = 'jsonpath={.metadata.name} {.spec.minReplicas} {.spec.maxReplicas}{"\\n"}'

    def __init__(self, world):
        self.process = subprocess.Popen(["kubectl", "get", "hpa", "-w", "-o", self.COLUMNS], env=world.env,
                                        text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.seen = {}
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            name, low, high = line.split()
            so_far = self.seen.setdefault(name, [])
            if not so_far or so_far[-1] != (int(low), int(high)):
                so_far.append((int(low), int(high)))

    def end(self):
        self.process.terminate()
        self.process.wait()
        self.thread.join()


def five_scenarios(world, lead, suffix):
    over, under = "over" + suffix, "under" + suffix
    world.apply(hpa(over), hpa(under))
    t = int(time.time()) + lead
    world.apply(
        schedule(over, trigger("low", t, t + 24, (3, 10), (1, 4), 10),
                 trigger("high", t + 8, t + 16, (5, 15), (2, 6), 20)),
        schedule(under, trigger("high", t, t + 24, (5, 15), (2, 6), 20),
                 trigger("low", t + 8, t + 16, (3, 10), (1, 4), 10)))
    bounds = Bounds(world)
    try:
        until(lambda: over in bounds.seen and under in bounds.seen)
        before(t)
        until(lambda: bounds.seen[over][-1] == (1, 4) and bounds.seen[under][-1] == (2, 6))
    finally:
        bounds.end()
    # a higher one takes over, the lower resumes, the last one's end counts
    assert bounds.seen[over] == [(2, 9), (3, 10), (5, 15), (3, 10), (1, 4)], bounds.seen[over]
    # a lower one's start and end change nothing while a higher one is open
    assert bounds.seen[under] == [(2, 9), (5, 15), (2, 6)], bounds.seen[under]


def the_five_scenarios_of_priority(world):
    in_time(five_scenarios, world)


def an_edit_in_an_open_window(world):
    world.apply(hpa("edit"))
    window = open_window()
    world.apply(schedule("edit", trigger("w", *window, (4, 8), (1, 2))))
    assert until(lambda: world.bounds("edit") == (4, 8)), world.bounds("edit")
    world.apply(schedule("edit", trigger("w", *window, (6, 12), (1, 2))))
    assert until(lambda: world.bounds("edit") == (6, 12)), world.bounds("edit")

    def rows():
        return [line.split() for line in world.kubectl("get", "shpa", "edit").splitlines()]
    # the status follows the HPA
    assert until(lambda: rows()[1][:5] == ["edit", "edit", "w", "6", "12"]), rows()
    assert rows()[0] == ["NAME", "HPA", "ACTIVE", "MIN", "MAX", "NEXT", "READY", "AGE"], rows()


def an_hpa_that_goes_and_comes_back(world):
    world.apply(hpa("gone"))
    world.apply(schedule("gone", trigger("w", *open_window(), (6, 12), (1, 2))))
    assert until(lambda: world.bounds("gone") == (6, 12)), world.bounds("gone")
    world.kubectl("delete", "hpa", "gone")
    assert until(lambda: world.condition("shpa", "gone", "Error") == ("True", "HPANotFound"))
    assert world.condition("shpa", "gone", "Ready") == ("False", "HPANotFound")
    world.apply(hpa("gone"))
    assert until(lambda: world.bounds("gone") == (6, 12)), world.bounds("gone")
    assert until(lambda: world.condition("shpa", "gone", "Ready") == ("True", "Reconciled"))


def explain_says_why(world):
    world.apply(hpa("why"))
    world.apply(schedule("why", trigger("w", *open_window(), (6, 12), (1, 2))))
    assert until(lambda: world.bounds("why") == (6, 12)), world.bounds("why")
    said = world.explain("shpa", "why", "-n", "default")
    for part in ("start:w, min 6, max 12", "open, and governs", "Next changes:",
                 "HorizontalPodAutoscaler default/why has min 6, max 12, as it should."):
        assert part in said, said
    said = world.explain("hpa", "why", "-n", "default")
    assert "SmartHorizontalPodAutoscaler default/why sets them; see: flyball explain shpa why -n default" in said, said


SCALED_OBJECT = {  # as much of KEDA's definition as a schedule needs
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "scaledobjects.keda.sh"},
    "spec": {"group": "keda.sh", "scope": "Namespaced",
             "names": {"kind": "ScaledObject", "plural": "scaledobjects", "singular": "scaledobject"},
             "versions": [{"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                 "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}


def explain_shows_other_targets(world):
    """ScaledObjects, the HPAs that they own, and plain workloads."""
    world.apply(SCALED_OBJECT)
    world.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd/scaledobjects.keda.sh")
    world.apply({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "queue"},
                 "spec": {"minReplicaCount": 0, "maxReplicaCount": 4, "scaleTargetRef": {"name": "queue"}}})
    window = trigger("w", *open_window(), (6, 12), (1, 2))
    world.apply(schedule("queue", window, HPAObjectRef={"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
                                                        "name": "queue"}))

    def explained(name):
        return world.explain("shpa", name, "-n", "default")
    assert until(lambda: "ScaledObject default/queue has min 6, max 12, as it should." in explained("queue")), \
        explained("queue")
    owned = hpa("keda-hpa-queue")
    owned["metadata"].update(labels={"scaledobject.keda.sh/name": "queue"}, ownerReferences=[
        {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "queue", "controller": True,
         "uid": world.get("scaledobject", "queue")["metadata"]["uid"]}])
    world.apply(owned)
    world.apply(schedule("through", window, HPAObjectRef={"name": "keda-hpa-queue"}))
    said = explained("through")
    assert "HorizontalPodAutoscaler default/keda-hpa-queue belongs to a ScaledObject of KEDA" in said, said
    assert "ScaledObject default/queue has min 6, max 12" in said, said
    world.apply(schedule("plain", window, HPAObjectRef={"apiVersion": "apps/v1", "kind": "Deployment", "name": "plain"}))
    said = explained("plain")
    assert "Deployment default/plain" in said and "scaled to between 6 and 12" in said, said
    world.kubectl("delete", "shpa", "queue", "through", "plain")
    world.kubectl("delete", "crd", "scaledobjects.keda.sh")


def boundary_in_a_storm(world, lead, suffix):
    name = "storm" + suffix
    world.apply(hpa(name))
    t = int(time.time()) + lead
    world.apply(schedule(name, trigger("w", t, t + 3600, (4, 8), (1, 2))))
    before(t)
    over = threading.Event()

    def write():
        number = 0
        while not over.is_set():
            number += 1
            world.kubectl("annotate", "hpa", name, "--overwrite", "noise=%d" % number, check=False)
    writers = [threading.Thread(target=write) for _ in range(3)]
    for one in writers:
        one.start()
    try:
        assert until(lambda: world.bounds(name) == (4, 8)), world.bounds(name)
    finally:
        over.set()
        for one in writers:
            one.join()


def a_boundary_in_a_storm_of_writes(world):
    in_time(boundary_in_a_storm, world)


def boundary_while_away(world, lead, suffix):
    name = "away" + suffix
    world.apply(hpa(name))
    t = int(time.time()) + lead
    world.apply(schedule(name, trigger("w", t, t + 3600, (4, 8), (1, 2))))
    assert until(lambda: world.condition("shpa", name, "Ready") == ("True", "Reconciled"))
    before(t)
    world.server.kill()
    try:
        before(t)
        time.sleep(max(0, t + 3 - time.time()))  # the boundary passes
    finally:
        world.server.start()
    back = time.time()
    assert until(lambda: world.bounds(name) == (4, 8)), world.bounds(name)
    print("# seen %.1f s after the server's return" % (time.time() - back))
    assert until(lambda: world.condition("shpa", name, "Ready") == ("True", "Reconciled"))

    def told():
        items = world.get("events", "--field-selector",
                          "involvedObject.name=%s,reason=HPAUpdated" % name)["items"]
        return sum(e.get("count", 1) for e in items)
    assert until(told) and told() == 1, told()


def a_boundary_while_the_server_is_away(world):
    in_time(boundary_while_away, world)


def demand(at):
    day = time.gmtime(at)
    return 12 if day.tm_wday < 5 and 9 <= day.tm_hour < 17 else 2


def history(folder, name):
    """Four weeks of office hours as OpenMetrics."""
    now = int(time.time()) // 300 * 300
    labels = 'namespace="default",horizontalpodautoscaler="%s"' % name
    metric = ',metric_name="cpu",metric_target_type="utilization"'
    lines = []
    for series, more, value in (("status_current_replicas", "", demand),
                                ("status_target_metric", metric, lambda at: 80),
                                ("spec_target_metric", metric, lambda at: 80)):
        lines.append("# TYPE kube_horizontalpodautoscaler_%s gauge" % series)
        lines += ["kube_horizontalpodautoscaler_%s{%s%s} %d %d" % (series, labels, more, value(at), at)
                  for at in range(now - 28 * 86400, now, 300)]
    path = pathlib.Path(folder, "history.txt")
    path.write_text("\n".join(lines + ["# EOF", ""]))
    return str(path)


def a_query_without_results_is_not_replaced(world):
    """The replicas of its HPA are recorded, but the query was to replace them."""
    world.apply(schedule("unanswered", HPAObjectRef={"name": "learn"}, smartRecommendation={
        "enabled": True, "mode": "Forecast", "query": "sum(no_such_series)"}))

    def forecast():
        return world.condition("shpa", "unanswered", "Forecast")
    assert until(lambda: forecast() not in (None, ("False", "Pending")), 60)
    assert forecast() == ("False", "InsufficientData"), forecast()
    assert "recommendation" not in world.get("shpa", "unanswered")["status"]


def a_floor_is_forecast(world):
    """From the history of another HPA, which a query names. maxReplicas is 9, less than the forecast of office hours."""
    world.apply(hpa("floor"))
    query = 'max(kube_horizontalpodautoscaler_status_current_replicas{horizontalpodautoscaler="learn"})'
    world.apply(schedule("floor", smartRecommendation={"enabled": True, "mode": "Forecast", "query": query}))

    def expected():
        now = time.time()
        return 9 if max(demand(now + ahead) for ahead in (0, 1800, 3599)) > 2 else 2
    assert until(lambda: world.condition("shpa", "floor", "Forecast") == ("True", "Forecasting"), 60), \
        world.get("shpa", "floor").get("status")
    assert until(lambda: world.bounds("floor") == (expected(), 9), 60), (world.bounds("floor"), expected())
    a_query_without_results_is_not_replaced(world)
    advice = world.get("shpa", "floor")["status"]["recommendation"]
    assert advice["forecast"]["floors"] and advice["backtest"]["goodEnough"], advice
    world.apply(schedule("floor", smartRecommendation={"enabled": True, "mode": "Recommend", "query": query}))
    assert until(lambda: world.bounds("floor") == (2, 9), 60), world.bounds("floor")


def windows_are_learned_from_prometheus(world):
    if not shutil.which("prometheus") or not shutil.which("promtool"):
        raise Skip("there is no Prometheus")
    tsdb = world.folder + "/tsdb"
    subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", history(world.folder, "learn"),
                    tsdb], check=True, capture_output=True)
    pathlib.Path(world.folder, "prometheus.yml").write_text("global: {scrape_interval: 1h}\n")
    port = free_port()
    prometheus = subprocess.Popen(
        ["prometheus", "--config.file=%s/prometheus.yml" % world.folder, "--storage.tsdb.path=" + tsdb,
         "--storage.tsdb.retention.time=120d", "--web.listen-address=127.0.0.1:%d" % port],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        world.run_operator("--smarthpa-prometheus-url", "http://127.0.0.1:%d" % port)
        manual = trigger("manual", *open_window(), (4, 8), (1, 2))
        world.apply(hpa("learn"))
        world.apply(schedule("learn", manual, smartRecommendation={"enabled": True, "mode": "Apply"}))

        def names():
            return [t["name"] for t in world.get("shpa", "learn").get("spec", {}).get("triggers", [])]
        assert until(lambda: names() == ["manual", "ai-mtuwthf-0850-1700"]), names()
        advice = world.get("shpa", "learn")["status"]["recommendation"]
        assert advice["signal"] == "demand" and advice["base"] == {"minReplicas": 2, "maxReplicas": 3}, advice
        assert advice["backtest"]["goodEnough"] and advice["backtest"]["underRatio"] == 0, advice
        assert until(lambda: world.bounds("learn") == (4, 8)), "the manual trigger must win"
        triggers = world.get("shpa", "learn")["spec"]["triggers"]
        assert triggers[0] == manual, triggers[0]
        a_floor_is_forecast(world)
    finally:
        world.stop_operator()
        prometheus.kill()
        prometheus.wait()


def without_prometheus_nothing_is_invented(world):
    port = free_port()
    world.run_operator("--smarthpa-prometheus-url", "http://127.0.0.1:%d" % port)
    world.apply(hpa("blind"))
    world.apply(schedule("blind", trigger("w", *open_window(), (4, 8), (1, 2)),
                         smartRecommendation={"enabled": True, "mode": "Apply"}))

    def said():
        return world.get("events", "--field-selector",
                         "involvedObject.name=blind,reason=PrometheusUnavailable")["items"]
    assert until(said)
    assert until(lambda: world.bounds("blind") == (4, 8))
    assert "recommendation" not in world.get("shpa", "blind")["status"]
    world.apply(hpa("unseen"))
    world.apply(schedule("unseen", smartRecommendation={"enabled": True, "mode": "Forecast"}))
    assert until(lambda: world.condition("shpa", "unseen", "Forecast") == ("False", "PrometheusUnavailable"))
    assert world.bounds("unseen") == (2, 9)


def a_feature_that_cannot_start_stops_no_other(world):
    """Addresses that cannot be used: schedules work, and those that learn report it."""
    world.run_operator("--smarthpa-prometheus-url", "ftp://metrics.example")
    world.apply(hpa("alone"))
    world.apply(schedule("alone", trigger("w", *open_window(), (4, 8), (1, 2)),
                         smartRecommendation={"enabled": True, "mode": "Recommend"}))
    assert until(lambda: world.bounds("alone") == (4, 8))
    assert world.operator.poll() is None

    def said():
        return world.get("events", "--field-selector",
                         "involvedObject.name=alone,reason=PrometheusUnavailable")["items"]
    assert until(said)
    assert "metrics.example" in said()[0]["message"] or "ftp" in said()[0]["message"], said()


CASES = [the_five_scenarios_of_priority, an_edit_in_an_open_window, an_hpa_that_goes_and_comes_back,
         explain_says_why, explain_shows_other_targets, a_boundary_in_a_storm_of_writes, a_boundary_while_the_server_is_away,
         windows_are_learned_from_prometheus, without_prometheus_nothing_is_invented,
         a_feature_that_cannot_start_stops_no_other]


def on_one_day(case):
    def run(world):
        far_from_midnight(200)
        case(world)
    run.__name__ = case.__name__
    return run


harness.main(World, [on_one_day(case) for case in CASES])
