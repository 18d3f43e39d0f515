"""What ``deploy/`` says can be done: commands are understood, objects are taken as they are."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from skerry import __version__
from skerry.cli.edge_identity import DEFAULT_IMAGE
from skerry.cli.main import main
from skerry.logic.fleet.syncing.manifest import hub_kubeconfig
from tests.kit.server.harness import serving

DEPLOY = Path(__file__).parents[3] / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
PROGRAM = "/usr/local/bin/skerry"


def understood(arguments: list[str]) -> click.Context:
    """Return what the program makes of *arguments*; it raises on anything it does not know."""
    context = main.make_context("skerry", list(arguments[:1]), resilient_parsing=True)
    _, command, _ = main.resolve_command(context, list(arguments))
    assert command is not None
    return command.make_context(arguments[0], list(arguments[1:]), parent=context)


def commands_of(unit: Path) -> list[list[str]]:
    """Return the command of a unit, as it is and with what its comments suggest for variables."""
    text = unit.read_text()
    (line,) = re.findall(r"^ExecStart=(.*)$", text, re.M)
    words = shlex.split(line)
    assert words[0] == PROGRAM
    fixed = [word for word in words[1:] if not word.startswith("$")]
    suggested = [shlex.split(flags) for flags in re.findall(r"^#\s+(--.*)$", text, re.M)]
    return [fixed, *([*fixed, *flags] for flags in suggested)]


@pytest.mark.parametrize(
    "arguments",
    [command for unit in UNITS for command in commands_of(unit)],
    ids=" ".join,
)
def test_the_program_understands_what_units_start(arguments: list[str], tmp_path: Path) -> None:
    # Kubeconfigs must be there to be named, and be ones.
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        yaml.safe_dump(hub_kubeconfig("https://hub/clusters/root", b"", "a", "t"))
    )
    arguments = [re.sub(r"^/.*\.kubeconfig$", str(kubeconfig), word) for word in arguments]
    assert understood(arguments).info_name == arguments[0]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_systemd_understands_the_units(tmp_path: Path) -> None:
    program = tmp_path / "skerry"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for unit in UNITS:
        text = unit.read_text().replace(PROGRAM, str(program))
        (tmp_path / unit.name).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", *(str(tmp_path / unit.name) for unit in UNITS)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


KUBERNETES = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
PLURALS = {
    "ClusterRole": ("apis/rbac.authorization.k8s.io/v1", "clusterroles", False),
    "ClusterRoleBinding": ("apis/rbac.authorization.k8s.io/v1", "clusterrolebindings", False),
    "Deployment": ("apis/apps/v1", "deployments", True),
    "Namespace": ("api/v1", "namespaces", False),
    "PersistentVolumeClaim": ("api/v1", "persistentvolumeclaims", True),
    "PodDisruptionBudget": ("apis/policy/v1", "poddisruptionbudgets", True),
    "Role": ("apis/rbac.authorization.k8s.io/v1", "roles", True),
    "RoleBinding": ("apis/rbac.authorization.k8s.io/v1", "rolebindings", True),
    "Secret": ("api/v1", "secrets", True),
    "Service": ("api/v1", "services", True),
    "ServiceAccount": ("api/v1", "serviceaccounts", True),
}


def objects(file: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(file.read_text()))


def deployments(file: Path) -> list[dict[str, Any]]:
    return [obj for obj in objects(file) if obj["kind"] == "Deployment"]


@pytest.mark.parametrize("file", KUBERNETES, ids=lambda file: file.name)
def test_the_program_understands_what_the_pods_start(file: Path, tmp_path: Path) -> None:
    # Files that Secrets bring must be there to be named.
    for name in ("ca.crt", "tls.crt", "tls.key", "kubeconfig"):
        (tmp_path / name).touch()
    (deployment,) = deployments(file)
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["skerry"]
    arguments = [re.sub(r"=/etc(d|/skerry)/", f"={tmp_path}/", text) for text in container["args"]]
    assert understood(arguments).info_name == arguments[0]


@pytest.mark.parametrize("file", KUBERNETES, ids=lambda file: file.name)
def test_pods_run_images_that_the_containerfile_builds(file: Path) -> None:
    built = re.findall(r"-t (\S+) \.", (DEPLOY / "Containerfile").read_text())
    (deployment,) = deployments(file)
    pod = deployment["spec"]["template"]["spec"]
    used = {each["image"] for each in (*pod.get("initContainers", []), *pod["containers"])}
    assert used == {DEFAULT_IMAGE if file.stem == "syncer" else f"skerry-hub:{__version__}"}
    assert used <= set(built)


@pytest.mark.parametrize("file", KUBERNETES, ids=lambda file: file.name)
async def test_a_server_takes_the_manifests_as_they_are_and_admits_their_pods(file: Path) -> None:
    async with serving() as server:
        for obj in objects(file):
            root, plural, namespaced = PLURALS[obj["kind"]]
            within = f"/namespaces/{obj['metadata']['namespace']}" if namespaced else ""
            reply = await server.create(f"/{root}{within}/{plural}?fieldValidation=Strict", obj)
            assert (reply.status, reply.warnings) == (201, []), reply.body
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        await server.create("/api/v1/namespaces/skerry/serviceaccounts", account)
        # The namespace enforces the policy "restricted".
        (deployment,) = deployments(file)
        template = deployment["spec"]["template"]
        metadata = {**template["metadata"], "name": "one"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        reply = await server.create("/api/v1/namespaces/skerry/pods", pod)
        assert (reply.status, reply.warnings) == (201, []), reply.body


def test_every_flag_the_text_names_is_one_the_hub_knows() -> None:
    known = {flag for option in understood(["hub"]).command.params for flag in option.opts}
    # Of kubectl, helm, timeout and systemctl.
    known |= {"--from-file", "--namespace", "--now", "--preserve-status", "--set"}
    used = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", (DEPLOY / "README.md").read_text()))
    assert used <= known
