#!/usr/bin/python3
"""What surrounds the controllers: install, completion, the manual page, the plugin, the image's
root. Usage: install.py FLYBALL. Speaks TAP.
"""
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile

import yaml

from harness import Embedded, Skip, TOP, Tap

FLYBALL = os.path.abspath(sys.argv[1])
ENV = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
CASES = []


def case(function):
    CASES.append(function)
    return function


def run(*args, check=True, **more):
    done = subprocess.run(args, capture_output=True, text=True, timeout=120,
                          stdin=subprocess.DEVNULL, env={**ENV, **more})
    if check:
        assert done.returncode == 0, f"{args}: {done.returncode}: {done.stderr}"
    return done


def objects(*flags):
    return [o for o in yaml.safe_load_all(run(FLYBALL, "install", *flags).stdout) if o]


def commands():
    return re.findall(r"^  ([a-z]+) ", run(FLYBALL, "help").stdout, re.MULTILINE)


@case
def install_prints_every_part():
    kinds = {o["kind"] for o in objects("--monitors")}
    wanted = {"CustomResourceDefinition", "Namespace", "ServiceAccount", "Role", "RoleBinding",
              "ClusterRole", "ClusterRoleBinding", "Deployment", "DaemonSet", "Service", "ServiceMonitor",
              "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
    assert kinds == wanted, kinds ^ wanted
    names = {o["metadata"]["name"] for o in objects() if o["kind"] == "CustomResourceDefinition"}
    files = {yaml.safe_load(f.read_text())["metadata"]["name"] for f in (TOP / "deploy/crds").glob("*.yaml")}
    assert names == files, names ^ files


@case
def calendars_add_a_role_and_a_flag():
    def parts(*flags):
        found = objects(*flags)
        roles = {o["metadata"]["name"] for o in found if o["kind"] in ("ClusterRole", "ClusterRoleBinding")}
        operator = next(o for o in found if o["kind"] == "Deployment")
        return roles, operator["spec"]["template"]["spec"]["containers"][0]["args"]

    (roles, args), (more_roles, more_args) = parts(), parts("--calendars")
    assert more_roles - roles == {"flyball-schedule-calendars"}, more_roles - roles
    assert more_args == args + ["--smarthpa-calendars"], more_args


@case
def namespace_and_image_are_set_everywhere():
    text = run(FLYBALL, "install", "--namespace", "elsewhere", "--agent-namespace", "nodes", "--image",
               "store/flyball:7").stdout
    assert "flyball-system" not in text
    assert not re.findall(r".*(?:namespace|metadata\.name): flyball-agent$|.*serviceaccount:flyball-agent:.*", text,
                          re.MULTILINE)
    assert text.count("'system:serviceaccount:nodes:flyball-agent'") == 3
    images = re.findall(r"image: (\S+)", text)
    assert images == ["store/flyball:7"] * 2, images


@case
def parts_can_be_left_out():
    every = {o["kind"] for o in objects("--monitors")}
    for flag, absent in (("--crds=false", {"CustomResourceDefinition"}), ("--namespaces=false", {"Namespace"}),
                         ("--monitors=false", set()),
                         ("--policies=false", {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"})):
        kinds = {o["kind"] for o in objects(flag)}
        assert every - kinds == absent | {"ServiceMonitor"}, (flag, every - kinds)


DOWNLOADS = "aim-engine-artifact-status-updater"  # of the original's download program, which reads the status it writes


@case
def every_role_is_bound_and_every_binding_has_its_role():
    all_objects = objects()
    roles = {(o["kind"], o["metadata"]["name"]) for o in all_objects if o["kind"] in ("Role", "ClusterRole")}
    bound = {(o["roleRef"]["kind"], o["roleRef"]["name"]) for o in all_objects if "roleRef" in o}
    accounts = {o["metadata"]["name"] for o in all_objects if o["kind"] == "ServiceAccount"}
    subjects = {s["name"] for o in all_objects for s in o.get("subjects", [])}
    roles.remove(("ClusterRole", "flyball-metrics-reader"))  # for the scraper, which is not ours
    roles.remove(("ClusterRole", DOWNLOADS))  # the operator binds it where artifacts are downloaded
    assert roles == bound, roles ^ bound
    assert subjects == accounts, subjects ^ accounts


@case
def the_chart_prints_the_same():
    if not shutil.which("helm"):
        raise Skip("helm is not installed")
    text = run("helm", "template", "x", str(TOP / "deploy/helm"), "--namespace", "flyball-system",
               "--kube-version", "1.34.0", "--include-crds", "--set", "monitors.enabled=true").stdout
    chart = {(o["kind"], o["metadata"]["name"]): o for o in yaml.safe_load_all(text) if o}
    printed = {(o["kind"], o["metadata"]["name"]): o for o in objects("--monitors")}
    del printed["Namespace", "flyball-system"]  # helm --create-namespace
    for o in chart.values():
        if o["kind"] in ("Deployment", "DaemonSet"):
            del o["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"]
    assert chart == printed, [k for k in chart.keys() | printed.keys() if chart.get(k) != printed.get(k)]


def chart_objects(*settings):
    """What the chart prints with these values."""
    if not shutil.which("helm"):
        raise Skip("helm is not installed")
    words = [word for setting in settings for word in ("--set", setting)]
    text = run("helm", "template", "x", str(TOP / "deploy/helm"), "--namespace", "flyball-system", "--kube-version",
               "1.34.0", *words).stdout
    return {(o["kind"], o["metadata"]["name"]): o for o in yaml.safe_load_all(text) if o}


@case
def the_chart_is_clean():
    chart_objects()
    text = run("helm", "lint", "--strict", str(TOP / "deploy/helm")).stdout
    assert "0 chart(s) failed" in text, text


@case
def the_chart_leaves_out_the_same_as_install():
    for selected in ("schedule", "*,-market", "saturation,market"):
        chart = chart_objects("controllers=" + selected.replace(",", "\\,"))
        printed = {(o["kind"], o["metadata"]["name"]) for o in objects("--crds=false", "--controllers", selected)}
        printed.remove(("Namespace", "flyball-system"))
        assert chart.keys() == printed, (selected, chart.keys() ^ printed)
        assert "--controllers=" + selected in \
            chart["Deployment", "flyball-operator"]["spec"]["template"]["spec"]["containers"][0]["args"]
    without = chart_objects("agent.enabled=false").keys()
    assert not [k for k in without if "agent" in k[1]], without


@case
def the_chart_applies_its_values():
    chart = chart_objects("fullnameOverride=acme", "operator.priorityClassName=high", "operator.podAnnotations.a=b",
                          "agent.podLabels.team=x", "operator.podDisruptionBudget.enabled=true", "rules.enabled=true",
                          "dashboards.enabled=true", "operator.topologySpreadConstraints[0].maxSkew=2")
    operator = chart["Deployment", "acme-operator"]["spec"]["template"]
    assert operator["metadata"]["annotations"] == {"a": "b"}, operator["metadata"]
    assert operator["spec"]["priorityClassName"] == "high" and operator["spec"]["serviceAccountName"] == "acme-operator"
    assert operator["spec"]["topologySpreadConstraints"] == [{"maxSkew": 2}], operator["spec"]
    assert chart["DaemonSet", "acme-agent"]["spec"]["template"]["metadata"]["labels"]["team"] == "x"
    assert chart["PodDisruptionBudget", "acme-operator"]["spec"]["minAvailable"] == 1
    assert chart["PrometheusRule", "acme"]["spec"]["groups"]
    dashboards = [o for k, o in chart.items() if "dashboard" in k[1]]
    assert len(dashboards) == 5 and all(json.loads(text)["panels"] for o in dashboards for text in o["data"].values())
    roles = {k for k in chart if k[0] in ("Role", "ClusterRole")}
    for o in chart.values():
        if "roleRef" in o:
            assert (o["roleRef"]["kind"], o["roleRef"]["name"]) in roles, o
        for subject in o.get("subjects", []):
            assert ("ServiceAccount", subject["name"]) in chart, subject
    policy = chart["ValidatingAdmissionPolicy", "acme-market-agent"]
    assert "system:serviceaccount:flyball-agent:acme-agent" in json.dumps(policy), policy


@case
def the_chart_refuses_unknown_values():
    chart_objects()
    for wrong in ("operater.replicas=1", "operator.replicas=two", "controllers=scheduel"):
        run_ = subprocess.run(["helm", "template", "x", str(TOP / "deploy/helm"), "--set", wrong], capture_output=True,
                              text=True, timeout=60)
        assert run_.returncode != 0 and "schema" in run_.stderr, (wrong, run_.stderr)


@case
def only_the_roles_of_selected_controllers_are_printed():
    def names(*flags):
        return {o["metadata"]["name"] for o in objects(*flags)}

    every, schedule = names(), names("--controllers", "schedule")
    for word in ("saturation", "market", "agent", "runtimeconfig", "aim-engine"):
        assert not [n for n in schedule if word in n and "." not in n], (word, schedule)  # CRDs have dots
    assert names("--controllers", "*") == every
    assert names("--controllers", "*,-market") == names("--controllers", "schedule,saturation,runtimeconfig")
    together = set.union(*(names("--controllers", c) for c in ("schedule", "saturation", "market", "runtimeconfig")))
    assert together == every, together ^ every
    operator = next(o for o in objects("--controllers", "schedule") if o["kind"] == "Deployment")
    assert operator["spec"]["template"]["spec"]["containers"][0]["args"][-1] == "--controllers=schedule", operator
    wrong = subprocess.run([FLYBALL, "install", "--controllers", "scheduel"], capture_output=True, text=True, timeout=60)
    assert wrong.returncode != 0 and not wrong.stdout and "scheduel" in wrong.stderr, wrong


def kustomized(folder):
    if not shutil.which("kubectl"):
        raise Skip("kubectl is not installed")
    return {(o["kind"], o["metadata"]["name"]): o
            for o in yaml.safe_load_all(run("kubectl", "kustomize", str(TOP / "deploy" / folder)).stdout)}


@case
def kustomize_prints_the_same():
    def flat(o):  # kustomize writes folded lines of expressions with more line breaks
        return re.sub(r"(\\n|\s)+", " ", json.dumps(o, sort_keys=True))
    printed = {(o["kind"], o["metadata"]["name"]): o for o in objects("--image", "flyball")}
    found = kustomized(".")
    assert found.keys() == printed.keys(), found.keys() ^ printed.keys()
    assert not [k for k in found if flat(found[k]) != flat(printed[k])]
    assert kustomized("../examples/kustomize/single")["Deployment", "flyball-operator"]["spec"]["replicas"] == 1
    assert kustomized("../examples/kustomize/alerts").keys() - found.keys() == {("PrometheusRule", "flyball")}
    left = kustomized("../examples/kustomize/without-agent")
    assert not [k for k in left if "agent" in k[1]] and len(found) - len(left) == 17, found.keys() - left.keys()


@case
def rules_of_definitions_have_no_stray_fields():
    """An unquoted comma in a flow mapping splits a message into two fields, which a server drops silently."""
    known = {"rule", "message", "messageExpression", "reason", "fieldPath", "optionalOldSelf"}

    def walk(node):
        if isinstance(node, dict):
            for rule in node.get("x-kubernetes-validations", []):
                assert set(rule) <= known, rule
            for child in node.values():
                walk(child)
        elif isinstance(node, list):
            for child in node:
                walk(child)

    for o in objects():
        walk(o)


@case
def no_role_takes_everything():
    for o in objects():
        for rule in o.get("rules", []):
            assert "*" not in rule["verbs"] + rule.get("resources", []) + rule.get("apiGroups", []), o


@case
def roles_have_no_more_than_is_used():
    """ConfigMaps by name wherever names are known, events of one group, status written and never asked for."""
    for o in objects():
        for rule in o.get("rules", []):
            named = rule.get("resourceNames") or o["metadata"].get("namespace") == "flyball-agent"
            assert "configmaps" not in rule.get("resources", []) or named, o["metadata"]["name"]
            assert "events.k8s.io" not in rule.get("apiGroups", []), o["metadata"]["name"]
            if any(r.endswith("/status") for r in rule.get("resources", [])) and o["metadata"]["name"] != DOWNLOADS:
                assert rule["verbs"] == ["patch"], o["metadata"]["name"]
    agent = [o for o in objects() if o["kind"] == "ClusterRole" and o["metadata"]["name"] == "flyball-market-agent"]
    assert not [r for r in agent[0]["rules"] if "configmaps" in r["resources"]]


@case
def the_operators_namespace_is_restricted():
    spaces = {o["metadata"]["name"]: o["metadata"]["labels"] for o in objects() if o["kind"] == "Namespace"}
    level = "pod-security.kubernetes.io/enforce"
    assert spaces["flyball-system"][level] == "restricted"
    where = {o["metadata"]["name"]: o["metadata"]["namespace"] for o in objects()
             if o["kind"] in ("Deployment", "DaemonSet")}
    assert where == {"flyball-operator": "flyball-system", "flyball-agent": "flyball-agent"}, where


@case
def metrics_are_not_open():
    """Each is served by HTTPS on its own port, and the port of the probes is another."""
    for o in objects("--monitors"):
        if o["kind"] in ("Deployment", "DaemonSet"):
            container = o["spec"]["template"]["spec"]["containers"][0]
            assert "--metrics-bind-address=:8443" in container["args"]
            assert not any("secure=false" in a or "open-metrics" in a for a in container["args"])
            assert {container[p]["httpGet"]["port"] for p in ("livenessProbe", "readinessProbe")} == {"health"}
        if o["kind"] == "ServiceMonitor":
            assert all(e["scheme"] == "https" and e["bearerTokenFile"] for e in o["spec"]["endpoints"])


@case
def one_namespace_for_both_is_refused():
    done = run(FLYBALL, "install", "--agent-namespace", "flyball-system", check=False)
    assert done.returncode == 2 and "must differ" in done.stderr and not done.stdout, done


@case
def a_bad_namespace_is_refused():
    done = run(FLYBALL, "install", "--namespace", "Not_A_Name", check=False)
    assert done.returncode == 2 and "Not_A_Name" in done.stderr and not done.stdout, done


class Shell:
    """A shell that has read its script, in a folder where `flyball` is the program under test. Its cluster has a node."""

    def __init__(self, name):
        for program in (name, "kubectl"):
            if not shutil.which(program):
                raise Skip(f"{program} is not installed")
        self.name = name
        self.script = run(FLYBALL, "completion", name).stdout

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        os.symlink(FLYBALL, f"{self.folder.name}/flyball")
        with open(f"{self.folder.name}/script", "w") as script:
            script.write(self.script)
        self.server = Embedded(FLYBALL, self.folder.name)
        self.env = {**ENV, "PATH": f"{self.folder.name}:{os.environ['PATH']}", "HOME": self.folder.name,
                    "TERM": "dumb", "KUBECONFIG": self.server.kubeconfig}
        subprocess.run(["kubectl", "create", "-f", "-"], env=self.env, check=True, capture_output=True, text=True,
                       input='{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-7"}}')
        return self

    def __exit__(self, *_):
        self.server.stop()
        self.folder.cleanup()

    def says(self, *words):
        done = subprocess.run([self.name, *words], env=self.env, cwd=self.folder.name, capture_output=True, text=True,
                              timeout=120)
        assert done.returncode == 0 and not done.stderr, done
        return [line.split("\t")[0] for line in done.stdout.splitlines()]


@case
def bash_completes_commands_flags_and_kinds():
    with Shell("bash") as shell:
        def offers(*words):
            return shell.says("-c", 'source script; COMP_WORDS=(flyball "$@"); COMP_CWORD=$#; _flyball; '
                              'printf "%s\\n" "${COMPREPLY[@]}"', "x", *words)
        offers_what_fits(offers)


@case
def fish_completes_commands_flags_and_kinds():
    with Shell("fish") as shell:
        offers_what_fits(lambda *words: shell.says("--no-config", "-c", "source script; complete -C 'flyball %s'"
                                                   % " ".join(words)))


def offers_what_fits(offers):
    assert offers("sch") == ["schedule"], offers("sch")
    assert offers("install", "--mon") == ["--monitors"], offers("install", "--mon")
    assert offers("explain", "sh") == ["shpa"], offers("explain", "sh")
    assert offers("up", "--testbed", "mar") == ["market"], offers("up", "--testbed", "mar")
    assert offers("explain", "node", "no") == ["node-7"], offers("explain", "node", "no")
    assert offers("explain", "node", "node-7", "-n", "kube-sys") == ["kube-system"]
    assert set(commands()) <= set(offers("")), offers("")
    assert offers("render", "-f", "scr") == ["script"], offers("render", "-f", "scr")


@case
def zsh_completes_commands_flags_and_kinds():
    """zsh completes only on a terminal."""
    with Shell("zsh") as shell:
        for typed, wanted in (("sch", "schedule"), ("install --mon", "install --monitors"),
                              ("explain shp", "explain shpa"), ("render -f scr", "render -f script"),
                              ("up --testbed mar", "up --testbed market"), ("explain node no", "explain node node-7"),
                              ("explain node x -n kube-sys", "explain node x -n kube-system")):
            line = typed_in_zsh(shell, "flyball " + typed)
            assert line == f"flyball {wanted}", (typed, line)


def typed_in_zsh(shell, typed):
    """The command line after a Tab; a key that is bound to a widget prints it."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(shell.folder.name)
        os.execvpe("zsh", ["zsh", "-f", "-i"], shell.env)
    try:
        os.write(terminal, b"PS1=; unsetopt zle_bracketed_paste; autoload -U compinit; compinit -u -D; source script; "
                 b"show() { print -r -- \"<<$BUFFER>>\" }; zle -N show; bindkey '^X' show; echo rea''dy\n")
        said = read_until(terminal, b"ready")
        os.write(terminal, typed.encode() + b"\t\x18")
        said = read_until(terminal, b">>")
        return said.rsplit(b"<<", 1)[1].split(b">>")[0].decode().strip()
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


def read_until(terminal, what):
    said = b""
    while what not in said:
        assert select.select([terminal], [], [], 120)[0], said
        said += os.read(terminal, 4096)
    return said


@case
def an_unknown_shell_is_refused():
    done = run(FLYBALL, "completion", "tcsh", check=False)
    assert done.returncode == 2 and "tcsh" in done.stderr, done


@case
def the_manual_page_has_every_command():
    page = (TOP / "docs/flyball.1").read_text()
    listed = re.findall(r"^\.It Cm (\S+)", page, re.MULTILINE)
    assert listed == commands(), set(listed) ^ set(commands())


@case
def every_command_has_help():
    for command in commands():
        done = run(FLYBALL, command, "--help")
        assert done.stdout.startswith(f"Usage: flyball {command}"), done.stdout[:80]


@case
def help_and_version_work_as_elsewhere():
    assert run(FLYBALL, "help", "schedule").stdout == run(FLYBALL, "schedule", "--help").stdout
    assert run(FLYBALL, "--version").stdout == run(FLYBALL, "version").stdout
    done = run(FLYBALL, "help", "shedule", check=False)
    assert done.returncode == 2 and '"shedule"' in done.stderr, done


@case
def kubectl_takes_it_as_a_plugin():
    if not shutil.which("kubectl"):
        raise Skip("kubectl is not installed")
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(FLYBALL, f"{folder}/kubectl-flyball")
        done = run("kubectl", "flyball", "version", PATH=f"{folder}:{os.environ['PATH']}")
        assert done.stdout.startswith("flyball "), done.stdout


@case
def the_image_root_runs_alone():
    if os.geteuid() != 0:
        raise Skip("only root may change its root folder")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        run(str(TOP / "deploy/image/rootfs"), FLYBALL, folder)
        os.mkdir(f"{folder}/proc")
        done = run("unshare", "--mount", "sh", "-c", f"mount -t proc proc {folder}/proc && exec chroot "
                   f"--userspec=65532:65532 {folder} /usr/bin/flyball version", check=False)
        if done.stderr.startswith("unshare: ") or "mount:" in done.stderr:
            raise Skip(done.stderr.strip())
        assert done.stdout.startswith("flyball "), done


tap = Tap()
for each in CASES:
    tap.run(each)
tap.end()
