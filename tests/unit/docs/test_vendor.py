"""Vendored modules are what their list says, licensed, and import what a browser finds."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from requirements.vendor import FOLDERS, LIST, edited, relative_imports, replaced

_PAGE = FOLDERS[0].parent
_IMPORTED = re.compile(r"""(?:\bfrom|\bimport)\s*\(?["']([^"'\s]+)["']""")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_nobody_has_edited_a_vendored_file(folder: Path) -> None:
    assert not edited(folder), f"run `make vendor`, or change {LIST}"


def test_an_edited_and_an_unlisted_file_are_found(tmp_path: Path) -> None:
    record = {"preact": {"files": {"preact.js": {"integrity": "sha512-of another file"}}}}
    (tmp_path / LIST).write_text(json.dumps(record))
    (tmp_path / "preact.js").write_text("edited")
    (tmp_path / "extra.js").write_text("unlisted")
    assert edited(tmp_path) == ["extra.js", "preact.js"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_every_package_has_its_licence_beside_it(folder: Path) -> None:
    packages = json.loads((folder / LIST).read_text())
    without = [
        title
        for title, package in packages.items()
        if not any(name.startswith("LICENSE") for name in package["files"])
    ]
    assert not without


def test_bare_imports_become_paths_from_the_importer() -> None:
    homes = {"preact": "preact.js", "preact/hooks": "hooks.js"}
    text = 'import{h}from"preact";export * from \'preact/hooks\';import "./own.js"'
    wanted = 'import{h}from"../preact.js";export * from \'../hooks.js\';import "./own.js"'
    assert relative_imports(text, homes, "diff/line.js") == wanted


def test_an_import_that_nothing_provides_is_refused() -> None:
    with pytest.raises(ValueError, match=r"line\.js imports 'left-pad'"):
        relative_imports('import pad from "left-pad"', {}, "line.js")


def test_a_text_is_replaced_as_often_as_the_list_says_and_no_other_count_is_taken() -> None:
    assert replaced("a(x) a(y)", [("a(", "b(", 2)], "x.js") == "b(x) b(y)"
    with pytest.raises(ValueError, match=r"x\.js: 'a\(' is there 1 times, want 2"):
        replaced("a(x)", [("a(", "b(", 2)], "x.js")


@pytest.mark.parametrize(
    "module", sorted(_PAGE.rglob("*.js")), ids=lambda path: path.relative_to(_PAGE).as_posix()
)
def test_a_module_imports_only_files_of_the_page(module: Path) -> None:
    if module.name == "uplot.js":
        return  # one function and an export; its text looks like imports
    for name in _IMPORTED.findall(module.read_text()):
        assert name.startswith("."), f"{name}: a browser finds relative paths only"
        assert (module.parent / name).resolve().is_file(), name


def test_the_page_names_files_that_exist_and_nothing_inline() -> None:
    page = (_PAGE / "index.html").read_text()
    for name in re.findall(r'"/console/assets/HASH/([^"]+)"', page):
        assert (_PAGE / name).is_file(), name
    assert "<style" not in page
    assert not re.search(r"<script(?![^>]*\bsrc=)", page)
    assert not re.search(r"\son\w+=|\sstyle=", page)


@pytest.mark.parametrize(
    "module",
    sorted((_PAGE / "app").rglob("*.js")),
    ids=lambda path: path.relative_to(_PAGE).as_posix(),
)
def test_text_is_only_ever_text(module: Path) -> None:
    source = module.read_text()
    assert source.startswith("// "), "a module begins with why it is there"
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "dangerously",
    ):
        assert word not in source, word
