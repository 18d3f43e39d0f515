"""Files of the page are named by their content and compressed once."""

from __future__ import annotations

import gzip
import posixpath
import re
from pathlib import Path

from skerry.web.assets import PREFIX, STATIC, read_assets

_IMPORT = re.compile(r'\bfrom *"(\.[^"]+)"')
_ASKED_FOR = re.compile(r'(?:src|href)="/console/assets/HASH/([^"]+\.js)"')
PAGE = '<script type="module" src="/console/assets/HASH/app/main.js"></script>'


def place(root: Path, script: str) -> Path:
    (root / "app").mkdir(parents=True, exist_ok=True)
    (root / "index.html").write_text(PAGE)
    (root / "app" / "main.js").write_text(script)
    return root


def test_the_page_names_the_folder_that_its_files_are_in(tmp_path: Path) -> None:
    assets = read_assets(place(tmp_path, "1;"))
    assert assets.folder.startswith(PREFIX)
    assert f"{assets.folder}app/main.js".encode() in assets.page.body
    assert list(assets.files) == [f"{assets.folder}app/main.js"]
    assert assets.files[f"{assets.folder}app/main.js"].media_type.startswith("text/javascript")


def test_another_content_is_another_folder_and_the_same_content_the_same(tmp_path: Path) -> None:
    first = read_assets(place(tmp_path / "a", "1;"))
    same = read_assets(place(tmp_path / "b", "1;"))
    other = read_assets(place(tmp_path / "c", "2;"))
    assert first == same
    assert first.folder != other.folder


def test_what_is_worth_it_is_compressed_beforehand(tmp_path: Path) -> None:
    assets = read_assets(place(tmp_path, "x = 1;\n" * 1000))
    [script] = assets.files.values()
    assert gzip.decompress(script.gzipped) == script.body
    assert len(script.gzipped) < 200
    assert not assets.page.gzipped


def test_the_console_has_a_page() -> None:
    assert b"<html" in read_assets().page.body


def _needed(module: str, found: set[str]) -> set[str]:
    """Return the modules that one cannot run without."""
    if module not in found:
        found.add(module)
        for name in _IMPORT.findall((STATIC / module).read_text()):
            _needed(posixpath.normpath(posixpath.join(posixpath.dirname(module), name)), found)
    return found


def test_the_page_asks_for_all_that_its_first_view_needs_at_once() -> None:
    asked = _ASKED_FOR.findall((STATIC / "index.html").read_text())
    assert sorted(asked) == sorted(_needed("app/main.js", set()))
