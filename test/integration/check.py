#!/usr/bin/python3
"""flyball check on the embedded API server: a bare cluster, an installation, and what can be wrong with either.

    check.py FLYBALL

There are no pods: the cases write the status that running workloads would have. Speaks TAP. Skipped where there is no kubectl.
"""
import datetime
import http.server
import json
import subprocess
import threading

import harness
from harness import until


class World(harness.World):
    def check(self, *flags, cluster=None):
        env = dict(self.env, KUBECONFIG=cluster) if cluster else self.env
        done = subprocess.run([self.flyball, "check", "-o", "json", *flags], env=env, capture_output=True, text=True,
                              timeout=120)
        lines = {}
        for one in json.loads(done.stdout)["checks"]:
            lines.setdefault(one["check"], []).append((one["state"], one["finding"], one.get("remedy", "")))
        return done.returncode, lines

    def accepts(self, manifest):
        done = subprocess.run(["kubectl", "apply", "-f", "-"], env=self.env, input=json.dumps(manifest), text=True,
                              capture_output=True, timeout=120)
        return done.returncode == 0

    def text(self, *flags):
        return subprocess.run([self.flyball, "check", *flags], env=self.env, capture_output=True, text=True, timeout=120)


def a_bare_cluster_lacks_definitions(w):
    code, lines = w.check()
    assert code == 1, lines
    assert lines["definitions"][0][0] == "failed" and "variantautoscalings.llmd.ai" in lines["definitions"][0][1], lines
    assert lines["operator"][0][0] == lines["agents"][0][0] == "warning", lines
    assert lines["Kubernetes"][0][0] == lines["in-place resize"][0][0] == "ok", lines
    assert lines["permissions"][0][:2] == ("ok", lines["permissions"][0][1]) and "with your user" in lines["permissions"][0][1]
    w.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
    said = subprocess.run([w.flyball, "explain", "node", "n1"], env=w.env, capture_output=True, text=True, timeout=60)
    assert said.returncode == 1 and "does not serve PodAllocations; install them with" in said.stderr, said
    assert lines["Prometheus"] == [("unknown", "not checked", "give its address with --prometheus URL")], lines
    shown = w.text()
    assert shown.returncode == 1 and "-> flyball install | kubectl apply --server-side -f -" in shown.stdout, shown
    assert shown.stdout.rstrip().splitlines()[-1].endswith("1 failed, 1 unknown"), shown.stdout


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def lease(renewed):
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "flyball-operator", "namespace": "flyball-system"},
            "spec": {"holderIdentity": "flyball-operator-1", "leaseDurationSeconds": 15, "renewTime": renewed}}


def an_installation_is_seen(w):
    w.kubectl("apply", "--server-side", "-f", "-", text=w.run(w.flyball, "install"))
    assert until(lambda: w.check()[1]["definitions"][0][0] == "ok"), w.check()
    code, lines = w.check()
    assert code == 1 and lines["operator"][0][:2] == ("failed", "0 of 2 replicas are available"), lines
    assert lines["leader"][0][0] == "failed", lines
    w.kubectl("scale", "deployment", "flyball-operator", "--replicas=0", "-n", "flyball-system")
    assert w.check()[1]["operator"][0][:2] == ("failed", "0 of 0 replicas are available"), w.check()
    w.kubectl("scale", "deployment", "flyball-operator", "--replicas=2", "-n", "flyball-system")
    bare = subprocess.run([w.flyball, "explain", "pod", "x"], env=w.env, capture_output=True, text=True, timeout=60)
    assert 'pods "x" not found' in bare.stderr, bare
    w.patch_status("deployment", "flyball-operator", {"replicas": 2, "readyReplicas": 2, "availableReplicas": 2},
                   "-n", "flyball-system")
    w.patch_status("daemonset", "flyball-agent", {"desiredNumberScheduled": 3, "numberReady": 2, "currentNumberScheduled": 3,
                                                  "numberMisscheduled": 0}, "-n", "flyball-agent")
    w.apply(lease(now()))
    code, lines = w.check()
    assert code == 0, lines
    assert lines["operator"] == [("ok", "2 of 2 replicas are available", "")], lines
    assert lines["agents"][0][:2] == ("warning", "ready on 2 of 3 nodes"), lines
    assert lines["leader"] == [("ok", "flyball-operator-1 leads", "")], lines
    assert lines["permissions"][0][0] == "ok" and lines["permissions"][0][1].startswith("the operator may do all"), lines
    w.apply(lease("2026-01-05T11:15:44.000000Z"))
    code, lines = w.check()
    assert code == 1 and "2026-01-05T11:15:44" in lines["leader"][0][1], lines
    assert lines["leader"][0][2] == "kubectl logs -n flyball-system deployment/flyball-operator", lines
    w.apply(lease("2099-01-05T11:15:44.000000Z"))
    code, lines = w.check()
    assert code == 1 and lines["leader"][0][:2] == \
        ("failed", "unknown: the clock that renewed the lease is ahead of this one, at 2099-01-05T11:15:44.000000Z"), lines
    w.apply(lease(now()))


def a_definition_that_is_being_deleted_fails(w):
    name = "clustermarkets.allocation.mbcas.io"
    w.kubectl("patch", "crd", name, "--type=merge", "-p", '{"metadata":{"finalizers":["example.com/hold"]}}')
    w.kubectl("delete", "crd", name, "--wait=false")
    code, lines = w.check()
    assert code == 1 and lines["definitions"][0][0] == "failed" and name + " (being deleted)" in lines["definitions"][0][1], lines
    w.kubectl("patch", "crd", name, "--type=merge", "-p", '{"metadata":{"finalizers":[]}}')
    assert until(lambda: name + " (missing)" in w.check()[1]["definitions"][0][1]), w.check()
    w.kubectl("apply", "--server-side", "-f", "-", text=w.run(w.flyball, "install"))
    assert until(lambda: w.check()[1]["definitions"][0][0] == "ok"), w.check()
    w.apply(lease(now()))


def a_missing_permission_is_named(w):
    w.kubectl("delete", "clusterrolebinding", "flyball-market")
    code, lines = w.check()
    assert code == 1 and lines["permissions"][0][0] == "failed" and "pods/resize" in lines["permissions"][0][1], lines
    w.kubectl("apply", "--server-side", "-f", "-", text=w.run(w.flyball, "install"))
    assert until(lambda: w.check()[1]["permissions"][0][0] == "ok")


def who_may_not_read_learns_that(w):
    w.kubectl("create", "serviceaccount", "nobody", "-n", "default")
    token = w.kubectl("create", "token", "nobody", "-n", "default").strip()
    code, lines = w.check(cluster=w.kubeconfig("nobody", token=token))
    assert lines["operator"][0][0] == lines["other controllers"][0][0] == "unknown", lines
    assert "forbidden" in lines["operator"][0][1], lines
    assert lines["permissions"][0][0] == "warning", lines  # not installed, as far as this user can see


def rivals_are_found(w):
    def deployment(image, replicas):
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "manager", "namespace": "default"},
                "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "m"}},
                         "template": {"metadata": {"labels": {"app": "m"}},
                                      "spec": {"containers": [{"name": "manager", "image": image}]}}}}
    assert w.check()[1]["other controllers"] == [("ok", "none of the replaced systems runs", "")]
    w.apply(deployment("registry.example/workload-variant-autoscaler:v0.9.0", 1))
    code, lines = w.check()
    assert code == 1 and lines["other controllers"][0][:2] == \
        ("failed", "Workload-Variant-Autoscaler runs: Deployment default/manager"), lines
    w.apply(deployment("registry.example/workload-variant-autoscaler:v0.9.0", 0))
    assert w.check()[1]["other controllers"][0][0] == "ok"


class Answers(http.server.BaseHTTPRequestHandler):
    result = []

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        text = json.dumps({"status": "success", "data": {"resultType": "vector", "result": Answers.result}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST

    def log_message(self, *_):
        pass


def prometheus_is_asked_for_its_models(w):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = "http://127.0.0.1:%d" % server.server_port
    assert w.check("--prometheus", url)[1]["Prometheus"][0][:2] == ("warning", "it answers, but has no vLLM series")
    Answers.result = [{"metric": {"model_name": "a"}, "value": [0, "2"]}, {"metric": {"model_name": "b"}, "value": [0, "1"]}]
    assert w.check("--prometheus", url)[1]["Prometheus"][0][:2] == ("ok", "it answers, and has vLLM series of 2 models")
    server.shutdown()
    server.server_close()
    code, lines = w.check("--prometheus", url)
    assert code == 1 and lines["Prometheus"][0][0] == "failed", lines


def what_cannot_be_asked_is_not_missing(w):
    w.kubectl("create", "serviceaccount", "blind", "-n", "default")
    token = w.kubectl("create", "token", "blind", "-n", "default").strip()
    _, lines = w.check(cluster=w.kubeconfig("blind", token=token))
    assert lines["definitions"][0][0] == "unknown" and "forbidden" in lines["definitions"][0][1], lines
    code, lines = w.check(cluster=w.kubeconfig("away", url="http://127.0.0.1:1"))
    assert code == 1 and set(lines) == {"API server", "Prometheus"}, lines


def names_of_others_do_not_control_the_terminal(w):
    w.apply(dict(lease(now()), spec=dict(lease(now())["spec"], holderIdentity="ev\x1b[31mil\nok       fake: line")))
    shown = w.text().stdout
    assert "\x1b" not in shown and not any(line.startswith("ok       fake") for line in shown.splitlines()), shown
    w.apply(lease(now()))


def long_lists_are_read_in_pages(w):
    """260 Deployments are two pages; the one that matters is on the second."""
    def one(name, image):
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
                "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "m"}},
                         "template": {"metadata": {"labels": {"app": "m"}},
                                      "spec": {"containers": [{"name": "c", "image": image}]}}}}
    w.apply(*[one("d-%03d" % i, "x") for i in range(260)], one("zz", "registry.example/mbcas:1"))
    assert "MBCAS runs: Deployment default/zz" in str(w.check()[1]["other controllers"]), w.check()[1]["other controllers"]
    w.kubectl("delete", "deployments", "--all", "-n", "default")


def bad_flags_are_refused(w):
    for flags in (("-o", "xml"), ("--what",), ("word",)):
        done = w.text(*flags)
        assert done.returncode == 2 and done.stderr.startswith("flyball check: "), done
    done = w.text("--kubeconfig", "/nowhere")
    assert done.returncode == 1 and "/nowhere" in done.stderr, done


def credentials_in_a_cluster_configuration_fail(w):
    """Stored before the definition had its rule: here, the rule is taken away for a moment."""
    assert w.check()[1]["credentials"][0][0] == "ok", w.check()
    crd = json.loads(w.kubectl("get", "crd", "aimclusterruntimeconfigs.aim.silogen.ai", "-o", "json"))
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    rules = spec.pop("x-kubernetes-validations")
    del crd["metadata"]["resourceVersion"]
    w.kubectl("replace", "-f", "-", text=json.dumps(crd))
    leaky = {"apiVersion": "aim.silogen.ai/v1alpha1", "kind": "AIMClusterRuntimeConfig", "metadata": {"name": "leaky"},
             "spec": {"serviceAccountName": "robot"}}
    assert until(lambda: w.accepts(leaky))
    spec["x-kubernetes-validations"] = rules
    w.kubectl("replace", "-f", "-", text=json.dumps(crd))
    code, lines = w.check()
    assert code == 1 and lines["credentials"][0][0] == "failed" and "leaky" in lines["credentials"][0][1], lines
    w.kubectl("delete", "aimclusterruntimeconfig", "leaky")
    assert w.check()[1]["credentials"][0][0] == "ok", w.check()


CASES = [a_bare_cluster_lacks_definitions, an_installation_is_seen, a_definition_that_is_being_deleted_fails,
         credentials_in_a_cluster_configuration_fail,
         a_missing_permission_is_named, who_may_not_read_learns_that, rivals_are_found, prometheus_is_asked_for_its_models,
         what_cannot_be_asked_is_not_missing, names_of_others_do_not_control_the_terminal,
         long_lists_are_read_in_pages, bad_flags_are_refused]

harness.main(World, CASES)
