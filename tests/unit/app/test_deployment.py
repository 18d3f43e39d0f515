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

from skerry.cli.main import main
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
def test_the_program_understands_what_units_start(arguments: list[str]) -> None:
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


def manifests() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / "kubernetes" / "hub.yaml").read_text()))


def test_the_program_understands_what_the_pods_start(tmp_path: Path) -> None:
    (deployment,) = [obj for obj in manifests() if obj["kind"] == "Deployment"]
    configuration = {obj["metadata"]["name"]: obj for obj in manifests()
                     if obj["kind"] == "ConfigMap"}  # fmt: skip
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    values = {
        each["name"]: configuration[source["name"]]["data"][source["key"]]
        for each in container["env"]
        for source in [each["valueFrom"]["configMapKeyRef"]]
    }
    arguments = [
        re.sub(r"\$\((\w+)\)", lambda found: values[found[1]], text) for text in container["args"]
    ]
    # Files that a Secret brings must be there to be named.
    for name in ("ca.crt", "tls.crt", "tls.key"):
        (tmp_path / name).touch()
    arguments = [text.replace("=/etcd/", f"={tmp_path}/") for text in arguments]
    assert container["command"] == ["skerry"]
    given = understood(arguments).params
    assert given["etcd_servers"] == values["ETCD_SERVERS"]
    assert given["external_hostname"] == values["HOSTNAME_OUTSIDE"]


async def test_a_server_takes_the_manifests_as_they_are() -> None:
    plurals = {
        "Namespace": "api/v1/namespaces",
        "ConfigMap": "api/v1/namespaces/skerry/configmaps",
        "Deployment": "apis/apps/v1/namespaces/skerry/deployments",
        "Service": "api/v1/namespaces/skerry/services",
        "PodDisruptionBudget": "apis/policy/v1/namespaces/skerry/poddisruptionbudgets",
    }
    async with serving() as server:
        for obj in manifests():
            path = f"/{plurals[obj['kind']]}?fieldValidation=Strict"
            reply = await server.create(path, obj)
            assert (reply.status, reply.warnings) == (201, []), reply.body


def test_every_flag_the_text_names_is_one_the_hub_knows() -> None:
    known = {flag for option in understood(["hub"]).command.params for flag in option.opts}
    used = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", (DEPLOY / "README.md").read_text()))
    assert used <= known
