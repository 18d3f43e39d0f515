"""What ``deploy/`` says can be done: flags exist, objects are of their kinds."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest
import yaml

from skerry.cli.hub import hub
from skerry.logic.builtin import builtin_resources
from skerry.logic.schema import validate

DEPLOY = Path(__file__).parents[3] / "deploy"


def hub_flags() -> set[str]:
    return {flag for option in hub.params if isinstance(option, click.Option)
            for flag in (*option.opts, *option.secondary_opts)}  # fmt: skip


@pytest.mark.parametrize("path", ["systemd/skerry-hub.service", "kubernetes/hub.yaml", "README.md"])
def test_every_flag_of_a_recipe_is_one_the_hub_knows(path: str) -> None:
    used = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", (DEPLOY / path).read_text()))
    assert used - {"--from-file"} <= hub_flags()


def test_the_manifests_are_valid() -> None:
    objects = list(yaml.safe_load_all((DEPLOY / "kubernetes" / "hub.yaml").read_text()))
    kinds = {(r.info.api_version, r.info.kind): r for r in builtin_resources()}
    for obj in objects:
        resource = kinds[(obj["apiVersion"], obj["kind"])]
        resource.default(obj)
        assert [str(error) for error in validate(resource.schema, obj)] == []
        assert [str(error) for error in resource.validate_create(obj)] == []
