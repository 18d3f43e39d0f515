"""The reference pages say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from skerry.app import reference
from skerry.app.api_server import ApiServer
from skerry.cli.main import main
from skerry.logic.machinery.builtin import builtin_resources
from tests.kit.server.harness import serving

_ROOT = Path(__file__).parents[3]
_REFERENCE = _ROOT / "docs" / "reference"
_COMPATIBILITY = (_REFERENCE / "api-compatibility.md").read_text()


@pytest.mark.parametrize("name", sorted(reference.pages(main)))
def test_a_generated_page_equals_what_the_code_says(name: str) -> None:
    assert (_REFERENCE / name).read_text() == reference.pages(main)[name], "run `make docs`"


def test_every_test_the_compatibility_page_names_exists() -> None:
    named = re.findall(r"tests/[\w/.]+", _COMPATIBILITY)
    assert named
    assert [path for path in named if not (_ROOT / path).exists()] == []


def test_every_group_version_served_is_on_the_compatibility_page() -> None:
    served = {resource.info.api_version for resource in builtin_resources()}
    assert sorted(v for v in served if f"`{v}`" not in _COMPATIBILITY) == []


async def test_every_admission_rule_is_on_the_compatibility_page() -> None:
    async with serving() as server:
        rules = _rules(server.api)
    assert rules
    assert [name for name in rules if f"| {name} |" not in _COMPATIBILITY] == []


def _rules(api: ApiServer) -> list[str]:
    return [type(rule).__name__ for rule in api.admission_rules]


def test_every_decision_record_is_numbered_once() -> None:
    names = sorted(path.name for path in (_ROOT / "docs" / "adr").glob("*.md"))
    assert [name[:4] for name in names] == [f"{i:04d}" for i in range(1, len(names) + 1)]
