#!/usr/bin/python3
"""Schedules on ScaledObjects of a real KEDA, with the real HPA controller.

    schedule_keda.py FLYBALL --cluster DIR      on the control plane that test/kube/cluster started in DIR

KEDA_CHURN_SECONDS sets how long the bounds are changed (default 40). Speaks TAP. Skipped where KEDA cannot be built.
"""
import json
import os
import subprocess
import sys
import threading
import time

import harness
from harness import Skip, TOP, until
from keda import Keda, scaled_object

DEFINITION = TOP / "deploy/crds/autoscaling.sarabala.io_smarthorizontalpodautoscalers.yaml"
CHURN_S = float(os.environ.get("KEDA_CHURN_SECONDS", "40"))
STEP_S = 2


class World(harness.World):
    FEATURE = "schedule"
    keda = missing = None

    def prepare(self):
        """flyball runs before KEDA is installed: it must notice the kind when it comes."""
        try:
            self.keda = Keda(self)
        except Skip as why:
            self.missing = why
            return
        self.define(DEFINITION)
        self.run_operator()

    def bounds(self, name):
        spec = self.get("hpa", "keda-hpa-" + name).get("spec", {})
        return spec.get("minReplicas"), spec.get("maxReplicas")

    def scaled(self, name):
        spec = self.get("scaledobject", name).get("spec", {})
        return spec.get("minReplicaCount"), spec.get("maxReplicaCount")

    def stop(self):
        if self.keda:
            self.keda.stop()
        super().stop()


def deployment(name):
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}},
                     "template": {"metadata": {"labels": {"app": name}},
                                  "spec": {"containers": [{"name": "c", "image": "none"}]}}}}


def schedule(name, target, low, high):
    """One window that is always open."""
    return {"apiVersion": "autoscaling.sarabala.io/v1alpha1", "kind": "SmartHorizontalPodAutoscaler",
            "metadata": {"name": name},
            "spec": {"HPAObjectRef": target, "triggers": [{
                "name": "always", "interval": {"recurring": "SUN,M,TU,W,TH,F,SAT"}, "startTime": "00:00:00",
                "endTime": "23:59:59", "startHPAConfig": {"minReplicas": low, "maxReplicas": high}}]}}


DIRECT = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "direct"}
OWNED = {"name": "keda-hpa-owned"}


def replicas(world, name):
    return world.get("deployment", name).get("spec", {}).get("replicas")


def a_window_reaches_the_hpa_through_its_scaled_object(world):
    world.apply(schedule("direct", DIRECT, 4, 11))
    assert until(lambda: world.condition("shpa", "direct", "Ready") == ("False", "HPANotFound"), 60)
    installed = time.monotonic()
    world.keda.define()
    world.keda.start()
    world.apply(deployment("direct"), scaled_object("direct", 1, 5))
    assert until(lambda: world.scaled("direct") == (4, 11), 60), world.scaled("direct")
    print("# bounds arrived %.1f s after the installation of KEDA began" % (time.monotonic() - installed))
    assert until(lambda: world.bounds("direct") == (4, 11), 60), (world.bounds("direct"), world.keda.text()[-2000:])
    assert until(lambda: replicas(world, "direct") == 4, 60), replicas(world, "direct")
    assert world.condition("shpa", "direct", "Ready") == ("True", "Reconciled")


def an_hpa_that_keda_owns_is_governed_through_its_owner(world):
    world.apply(deployment("owned"), scaled_object("owned", 1, 5))
    assert until(lambda: world.bounds("owned") == (1, 5), 60), world.bounds("owned")
    world.apply(schedule("owned", OWNED, 3, 12))
    assert until(lambda: world.bounds("owned") == (3, 12), 60), world.bounds("owned")
    assert world.scaled("owned") == (3, 12)
    assert until(lambda: replicas(world, "owned") == 3, 60), replicas(world, "owned")


class Seen:
    """All bounds that the HPAs of KEDA ever had, by a watch."""

    def __init__(self, world):
        self.bounds, self.process = {}, subprocess.Popen(
            ["kubectl", "get", "hpa", "--watch", "-o", "json", "--output-watch-events=false"], env=world.env,
            stdout=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        decoder, text = json.JSONDecoder(), ""
        for line in self.process.stdout:
            text += line
            if line != "}\n":
                continue
            one, _ = decoder.raw_decode(text)
            text = ""
            for hpa in one.get("items", [one]):
                seen = self.bounds.setdefault(hpa["metadata"]["name"], [])
                now = hpa["spec"]["minReplicas"], hpa["spec"]["maxReplicas"]
                if not seen or seen[-1] != now:
                    seen.append(now)

    def end(self):
        self.process.terminate()
        self.process.wait(30)
        self.reader.join()


def nothing_is_ever_reverted(world):
    """maxReplicas only ever grows, so that a single reverted write is seen as a step back. Meanwhile KEDA is given reasons to
    write its HPAs again: changed triggers, and a restart."""
    seen, written, end, step = Seen(world), {"direct": [(4, 11)], "owned": [(3, 12)]}, time.monotonic() + CHURN_S, 0
    while time.monotonic() < end:
        step += 1
        for name, target in (("direct", DIRECT), ("owned", OWNED)):
            written[name].append((1 + step % 4, 20 + step))
            world.apply(schedule(name, target, *written[name][-1]))
        if step % 5 == 3:
            world.kubectl("patch", "scaledobject", "direct", "owned", "--type=json", "-p", json.dumps(
                [{"op": "replace", "path": "/spec/triggers/0/metadata/desiredReplicas", "value": str(1 + step % 3)}]))
        if step == 6 or step % 60 == 0:
            world.keda.restart()
        time.sleep(STEP_S)  # the churn itself: users who edit
    for name in written:
        assert until(lambda: world.bounds(name) == written[name][-1], 60), (world.bounds(name), written[name][-1])
    time.sleep(3 * STEP_S)  # a revert would come now
    seen.end()
    for name, pairs in written.items():
        bounds = seen.bounds["keda-hpa-" + name]
        assert set(bounds) <= set(pairs), (set(bounds) - set(pairs), bounds)
        assert [high for _, high in bounds] == sorted(high for _, high in bounds), bounds
        assert bounds[-1] == pairs[-1] == world.bounds(name), (bounds[-1], pairs[-1])
        assert world.condition("shpa", name, "Contended") is None
        print("# %s: %d changes in %.0f s, %d seen at its HPA, none reverted" % (name, len(pairs) - 1, CHURN_S, len(bounds)))
    events = world.kubectl("get", "events", "-o", "jsonpath={.items[*].reason}")
    assert "HPAContended" not in events, events


def a_paused_scaled_object_is_left_alone(world):
    before = world.scaled("direct")
    world.kubectl("annotate", "scaledobject", "direct", "autoscaling.keda.sh/paused=true")
    assert until(lambda: world.condition("shpa", "direct", "Ready") == ("True", "TargetPaused"), 60)
    world.apply(schedule("direct", DIRECT, 2, 7))
    generation = world.get("shpa", "direct")["metadata"]["generation"]
    assert until(lambda: world.get("shpa", "direct")["status"].get("observedGeneration") == generation, 60)
    assert world.scaled("direct") == before
    world.kubectl("annotate", "scaledobject", "direct", "autoscaling.keda.sh/paused-")
    assert until(lambda: world.scaled("direct") == world.bounds("direct") == (2, 7), 60), world.bounds("direct")


def with_keda(case):
    def run(world):
        if world.missing:
            raise world.missing
        case(world)
    run.__name__ = case.__name__
    return run


if "--cluster" not in sys.argv:
    sys.exit("schedule_keda.py needs --cluster: KEDA runs on a real control plane")
harness.main(World, [with_keda(case) for case in (
    a_window_reaches_the_hpa_through_its_scaled_object, an_hpa_that_keda_owns_is_governed_through_its_owner,
    nothing_is_ever_reverted, a_paused_scaled_object_is_left_alone)])
