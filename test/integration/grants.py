#!/usr/bin/python3
"""What a user who may edit roles can make of that, on both servers: the rules against escalation, and owners of another
namespace.

    grants.py FLYBALL                     on the embedded API server
    grants.py FLYBALL --cluster DIR       on the control plane that test/kube/cluster started in DIR

Requests are sent as alice by impersonation. Speaks TAP. Skipped where there is no kubectl.
"""
import json
import ssl
import urllib.error
import urllib.request

import harness
from harness import Real, until

RBAC, MERGE = "/apis/rbac.authorization.k8s.io/v1", "application/merge-patch+json"
MAPS, ELSEWHERE = ("/api/v1/namespaces/%s/configmaps" % ns for ns in ("default", "elsewhere"))
READ_MAPS = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}
BIG, SMALL = RBAC + "/clusterroles/big", RBAC + "/clusterroles/small"
LABEL = {"metadata": {"labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}}}
SELECT = {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}


class World(harness.World):
    def ask(self, method, path, body=None, user=None, kind="application/json"):
        headers = {"Authorization": "Bearer " + self.server.token, "Content-Type": kind}
        if user:
            headers["Impersonate-User"] = user
        request = urllib.request.Request(self.server.url + path, json.dumps(body).encode() if body is not None else None,
                                         headers, method=method)
        tls = ssl.create_default_context(cafile=self.server.authority)
        try:
            with urllib.request.urlopen(request, context=tls, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as failure:
            return failure.code, json.load(failure)

    def admin(self, *words, **more):
        status, body = self.ask(*words, **more)
        assert status < 300, (words, body)
        return body

    def patch(self, path, change):
        """The status code and the message that alice gets."""
        status, body = self.ask("PATCH", path, change, "alice", MERGE)
        return status, body.get("message", "")

    def prepare(self):
        for name, rules in (("alice", [{"apiGroups": ["rbac.authorization.k8s.io"], "verbs": ["get", "update", "patch", "create"],
                                        "resources": ["clusterroles", "clusterrolebindings"]}, READ_MAPS]),
                            ("big", [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]), ("small", [READ_MAPS])):
            self.admin("POST", RBAC + "/clusterroles", {"metadata": {"name": name}, "rules": rules})
        for name in ("alice", "big"):
            self.admin("POST", RBAC + "/clusterrolebindings", {
                "metadata": {"name": name}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
                "subjects": [{"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}]})
        self.admin("POST", "/api/v1/namespaces", {"metadata": {"name": "elsewhere"}})
        assert until(lambda: self.ask("GET", SMALL, user="alice")[0] == 200)  # authorizers learn of roles by watches


def labels_and_annotations_grant(world):
    for change in (LABEL, {"metadata": {"annotations": {"a": "b"}}}, {"rules": [READ_MAPS, {**READ_MAPS, "verbs": ["list"]}]}):
        status, said = world.patch(BIG, change)
        assert status == 403 and "attempting to grant RBAC permissions not currently held" in said, (change, status, said)
    assert world.patch(RBAC + "/clusterrolebindings/big", {"metadata": {"labels": {"a": "b"}}})[0] == 403
    assert world.patch(SMALL, LABEL)[0] == 200  # she holds what it contains


def finalizers_and_owners_do_not(world):
    owner = world.admin("GET", "/api/v1/namespaces/default")["metadata"]["uid"]
    for path in (BIG, RBAC + "/clusterrolebindings/big"):
        for change in ({"finalizers": ["a.b/c"]}, {"ownerReferences": [{"apiVersion": "v1", "kind": "Namespace", "name": "default",
                                                                         "uid": owner}]}):
            assert world.patch(path, {"metadata": change})[0] == 200, (path, change)
        world.admin("PATCH", path, {"metadata": {"finalizers": None, "ownerReferences": None}}, kind=MERGE)
    assert world.patch(BIG, {})[0] == 200
    assert world.ask("PUT", BIG, world.admin("GET", BIG), "alice")[0] == 200


def aggregation_needs_everything(world):
    said = [world.patch(SMALL, SELECT), world.patch(RBAC + "/clusterroles/edit", {"aggregationRule": None, "rules": []})]
    status, body = world.ask("POST", RBAC + "/clusterroles", {"metadata": {"name": "new"}, "rules": [], **SELECT}, "alice")
    for status, message in [*said, (status, body["message"])]:
        assert status == 403 and message.endswith("must have cluster-admin privileges to use the aggregationRule"), message


def a_dependent_in_another_namespace(world):
    """kube-controller-manager lets it hold the deletion of an owner for ever; the embedded server does not, on purpose."""
    uid = world.admin("POST", MAPS, {"metadata": {"name": "owner"}})["metadata"]["uid"]
    world.admin("POST", ELSEWHERE, {"metadata": {"name": "held", "finalizers": ["a.b/c"], "ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid, "blockOwnerDeletion": True}]}})
    if isinstance(world.server, Real):
        assert until(lambda: "deletionTimestamp" in world.admin("GET", ELSEWHERE + "/held")["metadata"])
    world.admin("DELETE", MAPS + "/owner", {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Foreground"})
    if isinstance(world.server, Real):
        assert not until(lambda: world.ask("GET", MAPS + "/owner")[0] == 404, 10)
        world.admin("PATCH", ELSEWHERE + "/held", {"metadata": {"finalizers": None}}, kind=MERGE)
    assert until(lambda: world.ask("GET", MAPS + "/owner")[0] == 404)


harness.main(World, [labels_and_annotations_grant, finalizers_and_owners_do_not, aggregation_needs_everything,
                     a_dependent_in_another_namespace])
