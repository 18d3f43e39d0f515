"""The bill of materials says exactly what is locked."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

_ROOT = Path(__file__).parents[3]
_LOCK = (_ROOT / "requirements" / "run.txt").read_text()
_SCRIPT = runpy.run_path(str(_ROOT / "requirements" / "sbom.py"))


@pytest.fixture(scope="module")
def bill(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    output = tmp_path_factory.mktemp("sbom") / "deep" / "bill.json"
    _SCRIPT["main"](_ROOT / "requirements" / "run.txt", output)
    found: dict[str, Any] = json.loads(output.read_text())
    return found


def test_it_lists_exactly_the_locked_packages_with_their_hashes(bill: dict[str, Any]) -> None:
    wanted: dict[str, set[str]] = {}
    for part in re.split(r"\n(?=\S)", _LOCK):
        named = re.match(r"([\w.-]+)==([^ ;\\]+)", part)
        if named is not None:
            wanted[f"pkg:pypi/{named[1]}@{named[2]}"] = set(re.findall(r"sha256:(\w+)", part))
    found = {
        component["purl"]: {
            each["content"] for each in component["externalReferences"][0]["hashes"]
        }
        for component in bill["components"]
    }
    assert wanted
    assert found == wanted


def test_it_is_cyclonedx_and_the_same_every_time(bill: dict[str, Any], tmp_path: Path) -> None:
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", bill["serialNumber"])
    _SCRIPT["main"](_ROOT / "requirements" / "run.txt", tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_text()) == bill


def test_everything_but_the_program_itself_is_needed_by_something(bill: dict[str, Any]) -> None:
    root = bill["metadata"]["component"]["bom-ref"]
    references = {component["bom-ref"] for component in bill["components"]} | {root}
    assert {each["ref"] for each in bill["dependencies"]} == references
    needed = {ref for each in bill["dependencies"] for ref in each["dependsOn"]}
    assert needed == references - {root}


def test_it_names_no_place_to_download_from(bill: dict[str, Any]) -> None:
    addresses = set(re.findall(r"https?://[^/\"]+", json.dumps(bill)))
    assert addresses == {"http://cyclonedx.org"}


def test_most_components_say_their_licence(bill: dict[str, Any]) -> None:
    licensed = [component for component in bill["components"] if component.get("licenses")]
    assert len(licensed) >= 0.9 * len(bill["components"])


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("requests>=2\n", "line 1: .* want 'name==version'"),
        ("a==1 \\\n    --hash=sha256:" + "0" * 64 + "\nb @ file:///b\n", "line 3"),
        ("a==1\n", "a: no hash"),
    ],
)
def test_a_lock_that_does_not_pin_is_refused(text: str, wanted: str) -> None:
    with pytest.raises(ValueError, match=wanted):
        _SCRIPT["read_lock"](text)
