"""Files of the page are named by their content and compressed once."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

from skerry.web.assets import APART, ENTRY, PREFIX, STYLE, read_assets

_IMPORT = re.compile(r'^import .*from "([^"]+)";$', re.M)
_ASKED_FOR = re.compile(r'(?:src|href)="([^"]+)"')
_ICON = "style/icon.svg"
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


def test_the_page_asks_for_few_files_and_no_more() -> None:
    assets = read_assets()
    asked = set(_ASKED_FOR.findall(assets.page.body.decode()))
    assert asked == {f"{assets.folder}{each}" for each in (ENTRY, STYLE, *APART, _ICON)}
    assert asked <= assets.files.keys()
    needs = _IMPORT.findall(assets.files[f"{assets.folder}{ENTRY}"].body.decode())
    assert set(needs) == {"./wire.js"}
    assert b"@import" not in assets.files[f"{assets.folder}{STYLE}"].body
