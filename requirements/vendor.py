"""Fetches the ES modules that the console is made of: ``make vendor``.

A folder's ``VERSIONS.json`` names packages with the digest of each archive. An archive is fetched
by ``npm pack``, refused unless it has that digest, and of it the listed files are taken.
Bare imports become relative ones, because an import map would have to be inline, which the page's
Content-Security-Policy forbids; other texts are replaced where the list says so. The digests of
what results are written back, so a machine without npm, CI among them, can see that nobody edited a
vendored file (``tests/unit/docs/test_vendor.py``).
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = (ROOT / "src/skerry/web/static/vendor", ROOT / "tests/browser/vendor")
LIST = "VERSIONS.json"
_IMPORT = re.compile(r"""\b(from|import)(\s*)(["'])([^"'./][^"']*)\3""")


def integrity(content: bytes) -> str:
    """Return the digest of *content* as npm and browsers write it."""
    return "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()


def edited(folder: Path) -> list[str]:
    """Return the files of *folder* that are not what its list says, or are not listed."""
    listed = {
        name: record["integrity"]
        for package in json.loads((folder / LIST).read_text()).values()
        for name, record in package["files"].items()
    }
    present = {
        path.relative_to(folder).as_posix(): integrity(path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file() and path.name != LIST
    }
    return sorted(
        name for name in listed.keys() | present.keys() if listed.get(name) != present.get(name)
    )


def relative_imports(text: str, homes: dict[str, str], importer: str) -> str:
    """Return *text* with each bare import replaced by the path from *importer* to its home."""

    def path(found: re.Match[str]) -> str:
        word, blank, quote, name = found.groups()
        if name not in homes:
            raise ValueError(f"{importer} imports {name!r}, which no package here provides")
        target = os.path.relpath(homes[name], PurePosixPath(importer).parent)
        target = target if target.startswith("../") else f"./{target}"
        return f"{word}{blank}{quote}{target}{quote}"

    return _IMPORT.sub(path, text)


def replaced(text: str, replacements: Iterable[tuple[str, str, int]], name: str) -> str:
    """Return *text* with each (before, after, how often) replaced; another count is refused.

    For what a package does in a way that the page's Content-Security-Policy forbids.
    """
    for before, after, count in replacements:
        found = text.count(before)
        if found != count:
            raise ValueError(f"{name}: {before!r} is there {found} times, want {count}")
        text = text.replace(before, after)
    return text


def fetch(folder: Path) -> None:
    """Make the files of *folder* from the archives its list names, and write their digests back."""
    packages: dict[str, Any] = json.loads((folder / LIST).read_text())
    homes = {
        record["provides"]: name
        for package in packages.values()
        for name, record in package["files"].items()
        if "provides" in record
    }
    for title, package in packages.items():
        with tempfile.TemporaryDirectory() as scratch:
            archive = _packed(f"{title}@{package['version']}", Path(scratch))
            found = integrity(archive.read_bytes())
            if found != package["integrity"]:
                raise SystemExit(f"{title}: the archive is {found}, want {package['integrity']}")
            with tarfile.open(archive) as opened:
                for name, record in package["files"].items():
                    content = _member(opened, f"package/{record['from']}")
                    if homes and name.endswith(".js"):
                        text = relative_imports(content.decode(), homes, name)
                        text = replaced(text, record.get("replace", ()), name)
                        content = (text + record.get("append", "")).encode()
                    (folder / name).parent.mkdir(parents=True, exist_ok=True)
                    (folder / name).write_bytes(content)
                    record["integrity"] = integrity(content)
    (folder / LIST).write_text(json.dumps(packages, indent=2) + "\n")


def _packed(package: str, folder: Path) -> Path:
    command = ["npm", "pack", "--silent", "--pack-destination", str(folder), package]
    # Names and versions are those of our own list.
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
    (archive,) = folder.glob("*.tgz")
    return archive


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    if file is None:
        raise SystemExit(f"{archive.name!r} has no file {name}")
    return file.read()


if __name__ == "__main__":
    for place in FOLDERS:
        fetch(place)
    changed = [name for place in FOLDERS for name in edited(place)]
    if changed:
        sys.exit(f"not listed in {LIST}: {', '.join(changed)}")
