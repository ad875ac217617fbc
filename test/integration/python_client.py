#!/usr/bin/python3
"""The API server under a third-party client: Debian's python3-kubernetes, typed and dynamic.

    python_client.py FLYBALL
"""
import sys
import threading

from harness import Server, Tap

try:
    import kubernetes
    from kubernetes import client, config, dynamic, watch
except ImportError:
    print("1..0 # SKIP there is no python3-kubernetes here")
    sys.exit(0)

CRD = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "gauges.example.com"},
    "spec": {
        "group": "example.com", "scope": "Namespaced",
        "names": {"plural": "gauges", "singular": "gauge", "kind": "Gauge"},
        "versions": [{
            "name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {"level": {"type": "integer", "default": 3}}},
                "status": {"type": "object", "properties": {"seen": {"type": "integer"}}}}}}}]}}


def typed_objects(api):
    core = client.CoreV1Api(api)
    made = core.create_namespaced_config_map("default", client.V1ConfigMap(
        metadata=client.V1ObjectMeta(name="one", labels={"set": "a"}), data={"k": "1"}))
    assert made.metadata.uid and made.metadata.resource_version
    assert [i.metadata.name for i in core.list_namespaced_config_map(
        "default", label_selector="set=a").items] == ["one"]
    patched = core.patch_namespaced_config_map("one", "default", {"data": {"k": "2"}})
    assert patched.data == {"k": "2"}
    made.data = {"k": "stale"}
    try:
        core.replace_namespaced_config_map("one", "default", made)
        raise AssertionError("a stale PUT was taken")
    except client.ApiException as e:
        assert e.status == 409 and e.reason == "Conflict", e
    core.delete_namespaced_config_map("one", "default")
    assert not core.list_namespaced_config_map("default", label_selector="set=a").items


def paging(api):
    core = client.CoreV1Api(api)
    for i in range(7):
        core.create_namespaced_secret("default", {"metadata": {"name": "s%d" % i, "labels": {"p": "1"}}})
    names, token = [], None
    while True:
        page = core.list_namespaced_secret("default", label_selector="p=1", limit=3, _continue=token)
        assert len(page.items) <= 3
        names += [i.metadata.name for i in page.items]
        token = page.metadata._continue
        if not token:
            break
    assert names == ["s%d" % i for i in range(7)], names


def deployments_and_scale(api):
    apps = client.AppsV1Api(api)
    apps.create_namespaced_deployment("default", {
        "metadata": {"name": "web"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "i:1"}]}}}})
    scale = apps.patch_namespaced_deployment_scale("web", "default", {"spec": {"replicas": 4}})
    assert scale.spec.replicas == 4
    apps.patch_namespaced_deployment_status("web", "default", {"status": {"replicas": 4}})
    read = apps.read_namespaced_deployment("web", "default")
    assert (read.spec.replicas, read.status.replicas, read.metadata.generation) == (4, 4, 2), read


def watching(api):
    core, seen = client.CoreV1Api(api), []
    start = core.list_namespaced_config_map("default").metadata.resource_version
    stream = watch.Watch()

    def follow():
        for event in stream.stream(core.list_namespaced_config_map, "default", resource_version=start,
                                   timeout_seconds=20):
            seen.append((event["type"], event["object"].metadata.name))
            if event["type"] == "DELETED":
                stream.stop()
    thread = threading.Thread(target=follow)
    thread.start()
    core.create_namespaced_config_map("default", {"metadata": {"name": "w"}})
    core.patch_namespaced_config_map("w", "default", {"data": {"a": "b"}})
    core.delete_namespaced_config_map("w", "default")
    thread.join(20)
    assert seen == [("ADDED", "w"), ("MODIFIED", "w"), ("DELETED", "w")], seen


def dynamic_client(api):
    dyn = dynamic.DynamicClient(api)
    crds = dyn.resources.get(api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition")
    crds.create(body=CRD)
    for event in crds.watch(name="gauges.example.com", timeout=20):
        conditions = event["raw_object"].get("status", {}).get("conditions") or []
        if any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
            break
    dyn.resources.invalidate_cache()
    gauges = dyn.resources.get(api_version="example.com/v1", kind="Gauge")
    made = gauges.create(namespace="default", body={"apiVersion": "example.com/v1", "kind": "Gauge",
                                                    "metadata": {"name": "g"}, "spec": {"nosuch": 1}})
    assert made.to_dict()["spec"] == {"level": 3}, made
    applied = gauges.patch(namespace="default", name="g", content_type="application/merge-patch+json",
                           body={"spec": {"level": 5}})
    assert applied.spec.level == 5 and applied.metadata.generation == 2
    status = gauges.status.patch(namespace="default", name="g", content_type="application/merge-patch+json",
                                 body={"status": {"seen": 7}})
    assert status.status.seen == 7 and status.metadata.generation == 2
    try:
        gauges.patch(namespace="default", name="g", content_type="application/merge-patch+json",
                     body={"spec": {"level": "much"}})
        raise AssertionError("nonsense was taken")
    except dynamic.exceptions.DynamicApiError as e:
        assert e.status == 422, e
    gauges.delete(namespace="default", name="g")
    crds.delete(name="gauges.example.com")


def owners(api):
    core = client.CoreV1Api(api)
    owner = core.create_namespaced_config_map("default", {"metadata": {"name": "owner"}})
    core.create_namespaced_config_map("default", {"metadata": {"name": "owned", "ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.metadata.uid}]}})
    start = core.list_namespaced_config_map("default").metadata.resource_version
    core.delete_namespaced_config_map("owner", "default")
    gone = []
    for event in watch.Watch().stream(core.list_namespaced_config_map, "default", resource_version=start,
                                      timeout_seconds=20):
        gone.append(event["object"].metadata.name)
        if len(gone) == 2:
            break
    assert sorted(gone) == ["owned", "owner"], gone


CASES = [typed_objects, paging, deployments_and_scale, watching, dynamic_client, owners]


def main():
    print("# python3-kubernetes " + kubernetes.__version__)
    tap = Tap()
    with Server(sys.argv[1], ["--in-memory"]) as server:
        api = config.new_client_from_config(server.kubeconfig)
        for case in CASES:
            tap.run(case, api)
    tap.say(not server.complaints(), "the server ends well", server.complaints())
    tap.end()


main()
