#!/usr/bin/python3
"""What a user meets around the controllers: install, completion, the manual page, the plugin, the image's
root. Usage: install.py FLYBALL. Speaks TAP.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import yaml

from harness import Skip, TOP, Tap

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
    kinds = {o["kind"] for o in objects()}
    wanted = {"CustomResourceDefinition", "Namespace", "ServiceAccount", "Role", "RoleBinding",
              "ClusterRole", "ClusterRoleBinding", "Deployment", "DaemonSet", "Service", "ServiceMonitor",
              "PodMonitor"}
    assert kinds == wanted, kinds ^ wanted
    names = {o["metadata"]["name"] for o in objects() if o["kind"] == "CustomResourceDefinition"}
    files = {yaml.safe_load(f.read_text())["metadata"]["name"] for f in (TOP / "deploy/crds").glob("*.yaml")}
    assert names == files, names ^ files


@case
def namespace_and_image_are_set_everywhere():
    text = run(FLYBALL, "install", "--namespace", "elsewhere", "--image", "store/flyball:7").stdout
    assert "flyball-system" not in text
    images = re.findall(r"image: (\S+)", text)
    assert images == ["store/flyball:7"] * 2, images


@case
def monitors_and_definitions_can_be_left_out():
    kinds = {o["kind"] for o in objects("--monitors=false", "--crds=false")}
    assert not kinds & {"ServiceMonitor", "PodMonitor", "CustomResourceDefinition"}, kinds


@case
def every_role_is_bound_and_every_binding_has_its_role():
    all_objects = objects()
    roles = {(o["kind"], o["metadata"]["name"]) for o in all_objects if o["kind"] in ("Role", "ClusterRole")}
    bound = {(o["roleRef"]["kind"], o["roleRef"]["name"]) for o in all_objects if "roleRef" in o}
    accounts = {o["metadata"]["name"] for o in all_objects if o["kind"] == "ServiceAccount"}
    subjects = {s["name"] for o in all_objects for s in o.get("subjects", [])}
    assert roles == bound, roles ^ bound
    assert subjects == accounts, subjects ^ accounts


@case
def the_chart_prints_the_same():
    if not shutil.which("helm"):
        raise Skip("helm is not installed")
    text = run("helm", "template", "x", str(TOP / "deploy/helm"), "--namespace", "flyball-system",
               "--kube-version", "1.34.0", "--include-crds", "--set", "monitors.enabled=true").stdout
    chart = {(o["kind"], o["metadata"]["name"]): o for o in yaml.safe_load_all(text) if o}
    printed = {(o["kind"], o["metadata"]["name"]): o for o in objects() if o["kind"] != "Namespace"}
    for o in chart.values():
        if o["kind"] in ("Deployment", "DaemonSet"):
            del o["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"]
    assert chart == printed, [k for k in chart.keys() | printed.keys() if chart.get(k) != printed.get(k)]


@case
def no_role_takes_everything():
    for o in objects():
        for rule in o.get("rules", []):
            assert "*" not in rule["verbs"] + rule.get("resources", []) + rule.get("apiGroups", []), o


@case
def a_bad_namespace_is_refused():
    done = run(FLYBALL, "install", "--namespace", "Not_A_Name", check=False)
    assert done.returncode == 2 and "Not_A_Name" in done.stderr and not done.stdout, done


@case
def bash_completes_commands_and_flags():
    script = run(FLYBALL, "completion", "bash").stdout
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(FLYBALL, f"{folder}/flyball")
        ask = (script + 'COMP_WORDS=(flyball "$1" ${2+"$2"}); COMP_CWORD=$#; _flyball; '
               'printf "%s\\n" "${COMPREPLY[@]}"')
        path = f"{folder}:{os.environ['PATH']}"
        assert run("bash", "-c", ask, "x", "sch", PATH=path).stdout.split() == ["schedule"]
        assert run("bash", "-c", ask, "x", "install", "--mon", PATH=path).stdout.split() == ["--monitors"]
        assert "shpa" in run("bash", "-c", ask, "x", "explain", "", PATH=path).stdout.split()


def parsed_by(shell):
    if not shutil.which(shell):
        raise Skip(f"{shell} is not installed")
    with tempfile.NamedTemporaryFile("w") as script:
        script.write(run(FLYBALL, "completion", shell).stdout)
        script.flush()
        run(shell, "-n", script.name)


@case
def zsh_reads_its_script():
    parsed_by("zsh")


@case
def fish_reads_its_script():
    parsed_by("fish")


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
        run(str(TOP / "deploy/rootfs"), FLYBALL, folder)
        os.mkdir(f"{folder}/proc")
        done = run("unshare", "--mount", "sh", "-c", f"mount -t proc proc {folder}/proc && exec chroot "
                   f"--userspec=65532:65532 {folder} /usr/bin/flyball version", check=False)
        if "unshare failed" in done.stderr or "mount:" in done.stderr:
            raise Skip(done.stderr.strip())
        assert done.stdout.startswith("flyball "), done


tap = Tap()
for each in CASES:
    tap.run(each)
tap.end()
