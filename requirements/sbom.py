"""A bill of materials of what skerry runs with, in CycloneDX JSON, from the lock file.

    python requirements/sbom.py requirements/run.txt dist/skerry.cdx.json

Each locked package is a component with its version and every hash the lock accepts; what needs
what is taken from the lock's own notes, licences from the metadata of what is installed. There is
no time and nothing random in it: the same lock and environment give the same bytes. It names no
place to download from, because the hashes are what counts, wherever a package came from.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tomllib
import uuid
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

_REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)(?: ; ([^\\]+?))?\s*\\?$")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_VIA = re.compile(r"^\s+#\s+(?:via\s*)?(\S+)?")
# Classifiers that mean one licence and no other; "BSD License", for one, does not.
_SPDX = {
    "MIT License": "MIT",
    "Apache Software License": "Apache-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}


@dataclass
class Locked:
    """One package of the lock: the names of those that need it are in ``via``."""

    name: str
    version: str
    marker: str = ""
    hashes: list[str] = field(default_factory=list)
    via: list[str] = field(default_factory=list)

    @property
    def purl(self) -> str:
        return f"pkg:pypi/{normalized(self.name)}@{self.version}"


def normalized(name: str) -> str:
    """Return a package's name as package URLs spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_lock(text: str) -> list[Locked]:
    """Return the packages of a lock file, in its order; ValueError for what is none of it."""
    found: list[Locked] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        requirement = _REQUIREMENT.match(line)
        if requirement is not None:
            name, version, marker = requirement.groups()
            found.append(Locked(name, version, (marker or "").strip()))
        elif not found or not line.startswith(" "):
            raise ValueError(f"line {number}: {line!r}: want 'name==version'")
        elif hashed := _HASH.search(line):
            found[-1].hashes.append(hashed[1])
        elif (needed := _VIA.match(line)) is not None and needed[1]:
            found[-1].via.append(needed[1])
    for package in found:
        if not package.hashes:
            raise ValueError(f"{package.name}: no hash; the lock must be made with hashes")
    return found


def bill(project: dict[str, Any], packages: list[Locked]) -> dict[str, Any]:
    """Return the bill of materials of *project* and its locked *packages*."""
    root = f"pkg:pypi/{normalized(project['name'])}@{project['version']}"
    component = {
        "type": "application",
        "bom-ref": root,
        "name": project["name"],
        "version": project["version"],
        "description": project["description"],
        "licenses": [{"license": {"id": project["license"]}}],
        "purl": root,
    }
    components = [_component(package) for package in sorted(packages, key=lambda p: p.purl)]
    content = json.dumps([component, components], sort_keys=True).encode()
    serial = uuid.UUID(bytes=hashlib.sha256(content).digest()[:16], version=4)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {"component": component},
        "components": components,
        "dependencies": _dependencies(root, project["name"], packages),
    }


def _component(package: Locked) -> dict[str, Any]:
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": package.purl,
        "name": package.name,
        "version": package.version,
        "purl": package.purl,
        # Any of these files may be what is installed, by platform.
        "externalReferences": [
            {
                "type": "distribution",
                "url": package.purl,
                "hashes": [{"alg": "SHA-256", "content": each} for each in sorted(package.hashes)],
            }
        ],
    }
    if package.marker:
        component["properties"] = [{"name": "python:marker", "value": package.marker}]
    licence = _licence(package.name)
    if licence:
        component["licenses"] = [licence]
    return component


def _licence(name: str) -> dict[str, Any] | None:
    """Return what the installed package says of its licence."""
    try:
        said = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return None
    if "License-Expression" in said:
        return {"expression": said["License-Expression"]}
    for classifier in said.get_all("Classifier") or []:
        kind, _, last = classifier.rpartition(" :: ")
        if kind.startswith("License") and last in _SPDX:
            return {"license": {"id": _SPDX[last]}}
    text = said["License"].strip().splitlines() if "License" in said else []
    return {"license": {"name": text[0][:100]}} if text else None


def _dependencies(root: str, project: str, packages: list[Locked]) -> list[dict[str, Any]]:
    references = {normalized(package.name): list[str]() for package in packages}
    for package in packages:
        references[normalized(package.name)].append(package.purl)
    references[normalized(project)] = [root]
    needs: dict[str, set[str]] = {each: set() for found in references.values() for each in found}
    for package in packages:
        for name in package.via:
            for by in references.get(normalized(name), ()):
                needs[by].add(package.purl)
    return [{"ref": by, "dependsOn": sorted(found)} for by, found in sorted(needs.items())]


def main(lock: Path, output: Path) -> None:
    """Write the bill of *lock* to *output*."""
    folder = Path(__file__).parent.parent
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    found = bill(project, read_lock(lock.read_text()))
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(found, indent=2) + "\n")
    sys.stdout.write(f"{len(found['components'])} components in {output}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
