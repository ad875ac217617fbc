#!/usr/bin/python3
"""Webhooks as they are in bad hours: slow, gone, lying, or asked while the object changes. What they are asked and how
refusals look is in the recordings (test/conformance).

    webhooks.py FLYBALL
"""
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time

from api import Api, Refused
from harness import Embedded, Tap, free_port, until
from webhook import Webhook

MAPS = "/api/v1/namespaces/default/configmaps"
CONFIGS = "/apis/admissionregistration.k8s.io/v1/%swebhookconfigurations"
GROUP = "hooks.example.com"
THINGS = "/apis/" + GROUP + "/%s/namespaces/default/things"
CONVERT = {"convert": {"v1": [["/spec/dimensions/size", "/spec/size"], ["/spec/dimensions", None]],
                       "v2": [["/spec/size", "/spec/dimensions/size"]]}}


def a_map(name, labels=None, **data):
    return {"metadata": {"name": name, "labels": labels or {}}, "data": data}


class World:
    def __init__(self, server):
        self.server, self.api = server, Api(server)

    def other(self):
        return Api(self.server)

    def configure(self, hook, kind="validating", client=None, **more):
        """One webhook on config maps, gone when the case ends."""
        spec = {"name": "h.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "clientConfig": client or {"url": hook.url + "/", "caBundle": hook.ca},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}]}
        specs = more.pop("specs", [more])
        made = [{**spec, **each} for each in specs]
        self.api.create(CONFIGS % kind, {"metadata": {"name": "w"}, "webhooks": made})

    def clear(self):
        for kind in "validating", "mutating":
            try:
                self.api.delete(CONFIGS % kind + "/w")
            except Refused:
                pass


class Later(threading.Thread):
    """A request in its own thread; `result` is the object, or the refusal."""

    def __init__(self, world, *request):
        super().__init__(daemon=True)
        self.world, self.request, self.result = world, request, None
        self.start()

    def run(self):
        try:
            self.result = self.world.other().ask(*self.request)
        except Exception as error:  # the case looks at it
            self.result = error

    def wait(self):
        self.join(60)
        return self.result


def refused(function, *given):
    try:
        function(*given)
    except Refused as error:
        return error
    raise AssertionError("was not refused")


def same(got, want):
    if got != want:
        raise AssertionError("%r is not %r" % (got, want))


def has(text, part):
    if part not in str(text):
        raise AssertionError("%r is not in %r" % (part, str(text)))


def held_on(name, **more):
    return {"when": {"/request/name": name}, "held": True, **more}


def wait_for(hook, n=1, **where):
    if not until(lambda: len(hook.take(where, keep=True)) >= n, 20):
        raise AssertionError("the webhook was not asked %d times" % n)


def configurations_count_generations(w, hook):
    w.configure(hook)
    at = CONFIGS % "validating" + "/w"
    same(w.api.patch(at, {"metadata": {"labels": {"a": "b"}}})["metadata"]["generation"], 1)
    spec = w.api.get(at)["webhooks"][0]
    same(w.api.patch(at, {"webhooks": [{**spec, "timeoutSeconds": 3}]})["metadata"]["generation"], 2)
    spec["sideEffects"] = None
    has(refused(w.api.patch, at, {"webhooks": [spec]}), "sideEffects: Required value: must specify one of None, NoneOnDryRun")


# ---- waiting

def a_webhook_that_hangs_costs_only_its_request(w, hook):
    hook.answers = [held_on("slow")]
    w.configure(hook)
    slow = Later(w, "POST", MAPS, a_map("slow"))
    wait_for(hook)
    start = time.monotonic()
    for i in range(30):
        w.api.create(MAPS, a_map("fast-%d" % i))
        w.api.get(MAPS + "/fast-%d" % i)
    if time.monotonic() - start > 20:
        raise AssertionError("others waited")
    same(slow.result, None)
    hook.open.set()
    same(slow.wait()["metadata"]["name"], "slow")


def a_change_in_between_is_not_lost(w, hook):
    w.api.create(MAPS, a_map("both"))
    hook.answers = [{"when": {"/request/object/data/a": "1"}, "held": True}]
    w.configure(hook)
    first = Later(w, "PATCH", MAPS + "/both", {"data": {"a": "1"}}, "application/merge-patch+json")
    wait_for(hook)
    w.api.patch(MAPS + "/both", {"data": {"b": "2"}})
    hook.open.set()
    same(first.wait()["data"], {"a": "1", "b": "2"})
    same(w.api.get(MAPS + "/both")["data"], {"a": "1", "b": "2"})
    seen = hook.take({"/review/request/object/data/a": "1"})
    same([r["review"]["request"]["oldObject"].get("data") for r in seen], [None, {"b": "2"}])


def a_stale_put_is_a_conflict(w, hook):
    made = w.api.create(MAPS, a_map("stale"))
    hook.answers = [{"when": {"/request/object/data/a": "1"}, "held": True}]
    w.configure(hook)
    made["data"] = {"a": "1"}
    put = Later(w, "PUT", MAPS + "/stale", made)
    wait_for(hook)
    w.api.patch(MAPS + "/stale", {"data": {"b": "2"}})
    hook.open.set()
    same(put.wait().code, 409)
    same(w.api.get(MAPS + "/stale")["data"], {"b": "2"})


def an_object_deleted_in_between_is_not_found(w, hook):
    w.api.create(MAPS, a_map("gone"))
    hook.answers = [{"when": {"/request/object/data/a": "1"}, "held": True}]
    w.configure(hook)
    patch = Later(w, "PATCH", MAPS + "/gone", {"data": {"a": "1"}}, "application/merge-patch+json")
    wait_for(hook)
    w.api.delete(MAPS + "/gone")
    hook.open.set()
    same(patch.wait().code, 404)


def a_create_that_loses_the_race_leaves_nothing(w, hook):
    hook.answers = [{"when": {"/request/object/data/a": "1"}, "held": True}]
    w.configure(hook)
    lost = Later(w, "POST", MAPS, a_map("race", a="1"))
    wait_for(hook)
    won = w.api.create(MAPS, a_map("race", b="2"))
    hook.open.set()
    same(lost.wait().code, 409)
    same(w.api.get(MAPS + "/race"), won)


def the_object_is_the_same_in_every_run(w, hook):
    """Name, uid and time are made once, though the request runs three times."""
    hook.answers = []
    w.configure(hook)
    w.configure(hook, "mutating")
    made = w.api.create(MAPS, {"metadata": {"generateName": "g-"}})
    mutating, validating = (r["review"]["request"] for r in hook.take())
    same(mutating["name"], made["metadata"]["name"])
    same("uid" in mutating["object"]["metadata"], False)
    for key in "name", "uid", "creationTimestamp":
        same(validating["object"]["metadata"][key], made["metadata"][key])


def a_client_that_leaves_changes_nothing(w, hook):
    hook.answers = [held_on("left")]
    w.configure(hook)
    api = w.other()
    threading.Thread(target=swallow, args=(api.open, "POST", MAPS, a_map("left")), daemon=True).start()
    wait_for(hook)
    api.connection.sock.shutdown(2)
    time.sleep(0.2)  # the server reads the end of the connection before the webhook answers
    hook.open.set()
    w.api.create(MAPS, a_map("after-left"))
    same(refused(w.api.get, MAPS + "/left").code, 404)


def memory_is_bounded_while_a_webhook_hangs(w, hook):
    hook.answers = [{"when": {"/request/operation": "CREATE"}, "held": True}]
    w.configure(hook, timeoutSeconds=30)
    big = "x" * 1000000
    waiting = [Later(w, "POST", MAPS, a_map("big-%d" % i, k=big)) for i in range(40)]
    until(lambda: any(isinstance(each.result, Refused) for each in waiting), 30)
    refusals = [each.result for each in waiting if isinstance(each.result, Refused)]
    same({each.code for each in refusals}, {429})
    w.api.delete(CONFIGS % "validating" + "/w")
    w.api.create(MAPS, a_map("bystander"))
    hook.open.set()
    w.api.delete(MAPS + "/bystander")


def each_object_of_a_collection_is_asked_about_once(w, hook):
    w.configure(hook, rules=[{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["configmaps"]}])
    for i in range(300):
        w.api.create(MAPS, a_map("many-%d" % i, {"many": "yes"}))
    w.api.ask("DELETE", MAPS + "?labelSelector=many%3Dyes")
    same(len(hook.take()), 300)
    same(w.api.get(MAPS + "?labelSelector=many%3Dyes")["items"], [])


def long_headers_of_an_answer_are_a_failure(w, hook):
    hook.answers = [{"headers": {"X-Long-%d" % i: "y" * 1000 for i in range(90)}}]
    w.configure(hook)
    has(refused(w.api.create, MAPS, a_map("headers")), "response headers are too large (limit 65536 bytes)")


def swallow(function, *given):
    try:
        function(*given)
    except Exception:  # its connection is cut
        pass


def a_timeout_is_a_failed_call(w, hook):
    hook.answers = [held_on("late"), held_on("ignored")]
    w.configure(hook, specs=[
        {"timeoutSeconds": 1, "objectSelector": {"matchLabels": {"p": "fail"}}},
        {"name": "i.example.com", "timeoutSeconds": 1, "failurePolicy": "Ignore",
         "objectSelector": {"matchLabels": {"p": "ignore"}}}])
    ignored = Later(w, "POST", MAPS, a_map("ignored", {"p": "ignore"}))
    error = refused(w.api.create, MAPS, a_map("late", {"p": "fail"}))
    same(error.code, 500)
    has(error, '?timeout=1s": context deadline exceeded')
    same(ignored.wait()["metadata"]["name"], "ignored")
    refused(w.api.get, MAPS + "/late")


# ---- lying

def only_certificates_of_the_bundle_are_accepted(w, hook):
    w.configure(hook, client={"url": hook.url})
    has(refused(w.api.create, MAPS, a_map("x")), "certificate")
    w.clear()
    w.configure(hook, client={"url": hook.url.replace("127.0.0.1", "localhost"), "caBundle": hook.ca})
    has(refused(w.api.create, MAPS, a_map("x")), "certificate")
    w.clear()
    w.configure(hook, client={"url": hook.url, "caBundle": "bm90IGEgY2VydA=="})
    has(refused(w.api.create, MAPS, a_map("x")), 'failed calling webhook "h.example.com"')
    same(hook.take(), [])


def redirects_are_not_followed(w, hook):
    hook.answers = [{"path": "/", "raw": "", "http": 307, "headers": {"Location": hook.url + "/elsewhere"}}]
    w.configure(hook)
    has(refused(w.api.create, MAPS, a_map("x")), "307")
    same([r["path"] for r in hook.take()], ["/"])


def large_objects_reach_a_webhook(w, _):
    """On new connections, where the tickets of TLS arrive while the object is being sent."""
    for i in range(8):
        hook = Webhook()
        w.configure(hook, timeoutSeconds=5)
        w.api.create(MAPS, a_map("large-%d" % i, text="x" * 900000))
        w.clear()
        hook.close()


def a_huge_answer_is_cut(w, hook):
    hook.answers = [{"raw": "[" + "1," * (6 << 20) + "1]"}]
    w.configure(hook)
    has(refused(w.api.create, MAPS, a_map("x")), "larger than")


def odd_answers_are_failures(w, hook):
    w.configure(hook, "mutating")
    uid = {"uid": None}
    for answer, part in (({"raw": "[]"}, "not an object"), ({"raw": "\0"}, "json parse error"),
                         ({"response": {"allowed": "yes"}}, "cannot unmarshal"),
                         ({"response": {"warnings": {"a": 1}}}, "cannot unmarshal"),
                         ({"response": {"patchType": "JSONPatch"}}, "but not response.patch"),
                         ({"response": {"patch": "W10=", "patchType": "Merge"}}, "unsupported patch type"),
                         ({"response": {"patch": "!", "patchType": "JSONPatch"}}, "base64"),
                         ({"response": uid}, "expected response.uid"),
                         ({"review": {"kind": "", "apiVersion": ""}}, "expected webhook response of"),
                         ({"patch": [{"op": "replace", "path": "/kind", "value": "Secret"}]}, "changes kind"),
                         ({"patch": [{"op": "replace", "path": "/metadata", "value": 5}]}, "metadata"),
                         ({"patch": [{"op": "replace", "path": "/metadata/namespace", "value": "kube-system"}]},
                          "does not match the namespace")):
        hook.answers = [answer]
        error = refused(w.api.create, MAPS, a_map("odd"))
        has(error, part)
    refused(w.api.get, MAPS + "/odd")
    refused(w.api.get, MAPS.replace("default", "kube-system") + "/odd")


def a_delete_cannot_be_changed(w, hook):
    w.api.create(MAPS, a_map("kept"))
    hook.answers = [{"when": {"/request/operation": "DELETE"}, "patch": [{"op": "add", "path": "/data", "value": {}}]}]
    w.configure(hook, "mutating")
    has(refused(w.api.delete, MAPS + "/kept"), "not supported for this operation")
    w.api.get(MAPS + "/kept")


# ---- order

def earlier_webhooks_are_asked_again_if_needed(w, hook):
    hook.answers = [{"path": "/late", "patch": [{"op": "add", "path": "/data/late", "value": "1"}]}]
    specs = [{"name": "%s.example.com" % name, "reinvocationPolicy": policy,
              "clientConfig": {"url": hook.url + "/" + name, "caBundle": hook.ca}}
             for name, policy in (("early", "IfNeeded"), ("never", "Never"), ("late", "IfNeeded"))]
    w.configure(hook, "mutating", specs=specs)
    same(w.api.create(MAPS, a_map("again", a="1"))["data"], {"a": "1", "late": "1"})
    seen = hook.take()
    same([r["path"] for r in seen], ["/early", "/never", "/late", "/early"])
    same(seen[-1]["review"]["request"]["object"]["data"], {"a": "1", "late": "1"})


def a_refused_object_ends_the_deletion_of_a_collection(w, hook):
    for name in "c1", "c2", "c3":
        w.api.create(MAPS, a_map(name, {"c": "1"}))
    hook.answers = [{"when": {"/request/oldObject/metadata/name": "c2"}, "response": {"allowed": False}}]
    w.configure(hook)
    same(refused(w.api.ask, "DELETE", MAPS + "?labelSelector=c%3D1").code, 400)
    same([m["metadata"]["name"] for m in w.api.get(MAPS + "?labelSelector=c%3D1")["items"]], ["c2", "c3"])
    hook.answers = []
    same(len(w.api.ask("DELETE", MAPS + "?labelSelector=c%3D1")["items"]), 2)
    same(w.api.get(MAPS + "?labelSelector=c%3D1")["items"], [])


def policies_see_the_deletion_of_a_collection(w, hook):
    w.api.create(MAPS, a_map("p1", {"p": "1"}))
    base = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["configmaps"]}
    w.api.create(base + "ies", {"metadata": {"name": "keep"}, "spec": {
        "matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "oldObject.metadata.name != 'p1'"}]}})
    w.api.create(base + "ybindings", {"metadata": {"name": "keep"}, "spec": {"policyName": "keep",
                                                                           "validationActions": ["Deny"]}})
    try:
        same(refused(w.api.ask, "DELETE", MAPS + "?labelSelector=p%3D1").code, 422)
        w.api.get(MAPS + "/p1")
    finally:
        w.api.delete(base + "ybindings/keep")
        w.api.delete(base + "ies/keep")


def subresources_that_are_posted_are_seen(w, hook):
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    w.api.create("/api/v1/namespaces/default/pods", pod)
    hook.answers = [{"response": {"allowed": False, "status": {"message": "stay"}}}]
    w.configure(hook, rules=[{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                              "resources": ["pods/eviction"]}])
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    has(refused(w.api.create, "/api/v1/namespaces/default/pods/p/eviction", eviction), "stay")
    w.api.get("/api/v1/namespaces/default/pods/p")
    same(hook.take()[0]["review"]["request"]["kind"], {"group": "policy", "version": "v1", "kind": "Eviction"})


def a_service_is_found_by_the_given_address(w, hook):
    w.service.answers = [{"response": {"allowed": False, "status": {"message": "by service"}}}]
    w.configure(hook, client={"service": {"name": "hook", "namespace": "sys", "path": "/x"}, "caBundle": w.service.ca})
    has(refused(w.api.create, MAPS, a_map("x")), "by service")
    w.clear()
    w.configure(hook, client={"service": {"name": "other", "namespace": "sys"}, "caBundle": w.service.ca})
    has(refused(w.api.create, MAPS, a_map("x")), "--service-address other.sys=")


# ---- conversion

def define(w):
    size = {"type": "object", "properties": {"size": {"type": "integer"}}}

    def version(name, spec):
        return {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": spec}}}}
    w.api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
        "metadata": {"name": "things." + GROUP}, "spec": {
            "group": GROUP, "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [version("v1", size), version("v2", {"type": "object", "properties": {"dimensions": size}})],
            "conversion": {"strategy": "Webhook", "webhook": {
                "clientConfig": {"url": w.converter.url + "/convert", "caBundle": w.converter.ca},
                "conversionReviewVersions": ["v1"]}}}})
    if not until(lambda: isinstance(Later(w, "GET", THINGS % "v2").wait(), dict), 20):
        raise AssertionError("not served")


def a_thing(version, name, **spec):
    return {"apiVersion": GROUP + "/" + version, "kind": "Thing", "metadata": {"name": name}, "spec": spec}


def lists_convert_each_object_once(w, _):
    w.converter.answers = [CONVERT]
    define(w)
    for i in range(70):
        w.api.create(THINGS % "v1", a_thing("v1", "t%02d" % i, size=i))
    for again in range(2):
        items = w.api.get(THINGS % "v2")["items"]
        same([t["spec"] for t in items], [{"dimensions": {"size": i}} for i in range(70)])
    same(sorted(len(r["review"]["request"]["objects"]) for r in w.converter.take()), [6, 64])  # sent together
    w.api.patch(THINGS % "v2" + "/t05", {"spec": {"dimensions": {"size": 500}}})
    same(w.api.get(THINGS % "v1" + "/t05")["spec"], {"size": 500})
    same(w.api.get(THINGS % "v2")["items"][5]["spec"], {"dimensions": {"size": 500}})


def watches_follow_in_their_version(w, _):
    w.converter.answers = [CONVERT]
    rev = w.api.get(THINGS % "v1")["metadata"]["resourceVersion"]
    answer = w.other().open("GET", THINGS % "v2" + "?watch=1&resourceVersion=" + rev)
    w.api.create(THINGS % "v1", a_thing("v1", "seen", size=1))
    w.api.patch(THINGS % "v1" + "/seen", {"spec": {"size": 2}})
    w.api.delete(THINGS % "v1" + "/seen")
    events = [json.loads(answer.readline()) for _ in range(3)]
    same([(e["type"], e["object"]["apiVersion"], e["object"]["spec"]["dimensions"]["size"]) for e in events],
         [("ADDED", GROUP + "/v2", 1), ("MODIFIED", GROUP + "/v2", 2), ("DELETED", GROUP + "/v2", 2)])


def a_failed_conversion_fails_what_needs_it(w, _):
    fails = {"raw": "", "http": 500}
    rev = w.api.get(THINGS % "v1")["metadata"]["resourceVersion"]
    watch = w.other().open("GET", THINGS % "v2" + "?watch=1&resourceVersion=" + rev)
    for answer, part in ((fails, "failed: an error on the server"),
                         ({"response": {"convertedObjects": []}}, "returned 0 objects, expected 1"),
                         ({"response": {"result": {"status": "Failure", "message": "no way"}}}, "failed: no way"),
                         ({"response": {"convertedObjects": [a_thing("v3", "t01")]}}, "invalid groupVersion"),
                         ({"response": {"convertedObjects": [a_thing("v2", "t02")]}}, "must have the same name")):
        w.converter.answers = [answer]
        for question in (w.api.get, THINGS % "v2" + "/t01"), (w.api.patch, THINGS % "v2" + "/t01", {"spec": {}}):
            error = refused(*question)
            same(error.code, 500)
            has(error, "conversion webhook for %s/v1, Kind=Thing " % GROUP)
            has(error, part)
    w.converter.answers = [fails]
    refused(w.api.create, THINGS % "v2", a_thing("v2", "never", dimensions={"size": 1}))
    refused(w.api.get, THINGS % "v1" + "/never")
    w.api.create(THINGS % "v1", a_thing("v1", "plain", size=3))
    same(json.loads(watch.readline())["type"], "ERROR")
    same(w.api.get(THINGS % "v1" + "/plain")["spec"], {"size": 3})
    w.converter.answers = [CONVERT]
    same(w.api.get(THINGS % "v2" + "/plain")["spec"], {"dimensions": {"size": 3}})


def a_finalizer_holds_a_converted_object(w, _):
    w.converter.answers = [CONVERT]
    made = a_thing("v2", "held", dimensions={"size": 7})
    made["metadata"]["finalizers"] = ["example.com/f"]
    w.api.create(THINGS % "v2", made)
    marked = w.api.ask("DELETE", THINGS % "v2" + "/held")
    same((marked["spec"], "deletionTimestamp" in marked["metadata"]), ({"dimensions": {"size": 7}}, True))
    w.api.patch(THINGS % "v2" + "/held", {"metadata": {"finalizers": None}})
    same(refused(w.api.get, THINGS % "v1" + "/held").code, 404)


def a_definition_may_go_while_its_object_waits(w, _):
    w.converter.answers = [CONVERT]
    made = Webhook([{"held": True}])
    try:
        w.configure(made, rules=[{"apiGroups": [GROUP], "apiVersions": ["*"], "operations": ["CREATE"],
                                  "resources": ["things"]}])
        waiting = Later(w, "POST", THINGS % "v1", a_thing("v1", "late", size=1))
        wait_for(made)
        w.api.delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things." + GROUP)
        until(lambda: isinstance(Later(w, "GET", THINGS % "v1").wait(), Exception), 20)
    finally:
        made.open.set()
    if not isinstance(waiting.wait(), Exception):
        raise AssertionError("created without a definition: %s" % waiting.result)
    made.close()


# ---- the end

def a_server_that_stops_answers_who_waits(w, hook):
    hook.answers = [held_on("last")]
    w.configure(hook)
    last = Later(w, "POST", MAPS, a_map("last"))
    wait_for(hook)
    w.server.process.send_signal(signal.SIGTERM)
    same(getattr(last.wait(), "code", last.result), 503)
    same(w.server.process.wait(30), 0)


CASES = (configurations_count_generations, a_webhook_that_hangs_costs_only_its_request,
         a_change_in_between_is_not_lost, a_stale_put_is_a_conflict,
         an_object_deleted_in_between_is_not_found, a_create_that_loses_the_race_leaves_nothing,
         the_object_is_the_same_in_every_run, a_client_that_leaves_changes_nothing,
         memory_is_bounded_while_a_webhook_hangs, each_object_of_a_collection_is_asked_about_once,
         long_headers_of_an_answer_are_a_failure, a_timeout_is_a_failed_call,
         only_certificates_of_the_bundle_are_accepted, redirects_are_not_followed,
         large_objects_reach_a_webhook, a_huge_answer_is_cut,
         odd_answers_are_failures, a_delete_cannot_be_changed, earlier_webhooks_are_asked_again_if_needed,
         a_refused_object_ends_the_deletion_of_a_collection, policies_see_the_deletion_of_a_collection,
         subresources_that_are_posted_are_seen, a_service_is_found_by_the_given_address,
         lists_convert_each_object_once, watches_follow_in_their_version, a_failed_conversion_fails_what_needs_it,
         a_finalizer_holds_a_converted_object, a_definition_may_go_while_its_object_waits,
         a_server_that_stops_answers_who_waits)


def bad_addresses_of_services_are_refused():
    for value in "x", "a.b", "a=1", ".b=1", "a.=1", "a.b=", "a.b=1,c":
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.argv[1], "apiserver", "--data", folder + "/d", "--listen", "127.0.0.1:0",
                                   "--service-address", value], capture_output=True, text=True, timeout=30)
            if not done.returncode:
                raise AssertionError("%s is accepted" % value)
            has(done.stderr, "must be NAME.NAMESPACE=ADDRESS[:PORT]")


def main():
    tap = Tap()
    tap.run(bad_addresses_of_services_are_refused)
    service = Webhook(names="DNS:hook.sys.svc")
    with tempfile.TemporaryDirectory() as folder:
        server = Embedded(sys.argv[1], folder, ["--service-address", "x.y=127.0.0.1:%d,hook.sys=127.0.0.1:%d" % (
            free_port(), service.port)])
        world = World(server)
        world.service, world.converter = service, Webhook()
        try:
            for case in CASES:
                hook = Webhook()
                tap.run(case, world, hook)
                hook.close()
                if server.process.poll() is None:
                    world.clear()
        finally:
            server.stop()
            server.status, server.said = server.process.returncode, server.text()
        tap.say(not server.complaints(), "the server ends well", server.complaints())
    service.close()
    world.converter.close()
    tap.end()


if __name__ == "__main__":
    main()
