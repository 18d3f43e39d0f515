"""Unit tests mirror the source path for path: ``a/b.py`` is tested by ``a/test_b.py`` or ``a/b/``.

Whoever changes a module knows where its tests are. What only wires things together is exempt, with
a reason; the modules in ``untested.txt`` have no unit test of their own yet, and the list only gets
shorter.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

_ROOT = Path(__file__).parents[2]
SOURCE, TESTS = _ROOT / "src" / "skerry", Path(__file__).parent
UNTESTED = TESTS / "untested.txt"

# Patterns of paths below src/skerry, and why a test of the module alone would say nothing.
WIRING = {
    "**/controller.py": "builds a controller of parts that are tested; tests/sim runs them",
    "controllers/workload/kinds.py": "names of types",
    "cli/*.py": "flags and output of commands, whose tests are in tests/e2e and cli",
    "app/*.py": "builds processes of parts that are tested; tests/e2e runs them",
    "**/settings.py": "fields with defaults; the reference page is compared with them",
    "scheduler/plugins/*.py": "compared with a reference of the whole decision, in test_agreement",
    "store/memory.py": "tests/contract/store runs one suite over every store",
    "store/etcd.py": "tests/contract/store runs one suite over every store",
    "api/kcp/*.py": "schemas as data, which the reference pages show and e2e tests use",
    "logic/fleet/placement/choosing.py": "a protocol, which scheduler/placement implements",
    "edge/agent/syscall_numbers.py": "a table of the kernel's",
}


def modules() -> list[PurePosixPath]:
    return [
        PurePosixPath(path.relative_to(SOURCE).as_posix())
        for path in sorted(SOURCE.rglob("*.py"))
        if path.name not in ("__init__.py", "__main__.py")
    ]


def is_mirrored(module: PurePosixPath) -> bool:
    folder = TESTS / module.with_suffix("")
    file = TESTS / module.with_name(f"test_{module.name}")
    return file.is_file() or (folder.is_dir() and any(folder.rglob("test_*.py")))


def is_wiring(module: PurePosixPath) -> bool:
    # A leading slash makes a pattern mean the whole path.
    return any(PurePosixPath("/", module).match(_whole(pattern)) for pattern in WIRING)


def _whole(pattern: str) -> str:
    return pattern.removeprefix("**/") if pattern.startswith("**/") else f"/{pattern}"


def listed() -> list[str]:
    return [line for line in UNTESTED.read_text().splitlines() if not line.startswith("#")]


def test_every_module_has_a_test_of_its_own_is_wiring_or_is_listed() -> None:
    known = set(listed())
    missing = [
        str(module)
        for module in modules()
        if not is_mirrored(module) and not is_wiring(module) and str(module) not in known
    ]
    assert not missing, "write tests/unit/<folder>/test_<module>.py"


def test_the_list_of_untested_modules_gets_shorter() -> None:
    present = {str(module) for module in modules()}
    tested = [name for name in listed() if name in present and is_mirrored(PurePosixPath(name))]
    assert not tested, f"take them off {UNTESTED.name}"


@pytest.mark.parametrize("pattern", WIRING)
def test_every_exemption_is_used(pattern: str) -> None:
    assert any(
        PurePosixPath("/", module).match(_whole(pattern))
        for module in modules()
        if not is_mirrored(module)
    )


def test_tests_of_a_module_that_is_gone_are_noticed() -> None:
    assert not is_mirrored(PurePosixPath("kit/there_is_no_such_module.py"))
    assert is_mirrored(PurePosixPath("kit/log.py"))
    assert is_wiring(PurePosixPath("app/hub.py"))
    assert not is_wiring(PurePosixPath("store/recent.py"))
