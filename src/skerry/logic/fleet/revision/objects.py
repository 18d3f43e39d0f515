"""Manifests and contents as objects: PlacementRevisions, in pages, and RevisionContents.

The first page of revision 41 of ``web`` is ``web-41``, further ones are ``web-41.2``,
``web-41.3`` …: no placement's page has another's name. The first is written last, so a revision
whose first page is there is there as a whole; whoever reads one with a page missing takes all of it
for missing.

Pages are read from a watch, one by one and in any order, and may be deleted one by one as well. So
nothing is believed of a set of pages before they agree: on the digest, on how many there are, and
the objects they list must come to that digest. A page in which somebody has edited those makes the
revision missing. That stops what would be sent, and sends nothing wrong.

What is no part of the digest (causes, the cut's name, resourceVersions) may differ between two cuts
of the same state. It is as of the cut that made the revision; a later cut of the same state changes
the annotations of the first page and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from skerry.api.edge import (
    API_VERSION,
    CUT,
    CUT_SEQUENCE,
    PIN,
    SOURCE_PLACEMENT,
    SliceOwner,
)
from skerry.api.kcp.revisions import MAX_CAUSES, MAX_ITEMS
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.placement.slices import ended_name, label_for
from skerry.logic.fleet.revision.causes import Cause
from skerry.logic.fleet.revision.manifest import Inputs, Manifest, RevisionItem, customizer_ref

# What is cut off by hand from an annotation is no number.
_MAX_DIGITS = 18


class Cut(NamedTuple):
    """A revision as it is written: its number, which cut it is, what caused it.

    ``name`` is the value of the annotation that asked for the cut, if one did.
    """

    number: int
    sequence: int
    causes: tuple[Cause, ...] = ()
    name: str = ""


def revision_name(placement: str, number: int, page: int = 1) -> str:
    """Return the name of a page of a revision."""
    return ended_name(placement, f"-{number}" if page == 1 else f"-{number}.{page}")


def revision_objects(owner: SliceOwner, manifest: Manifest, cut: Cut) -> list[Object]:
    """Return the PlacementRevisions of a manifest in the order of writing: the first page last."""
    count = max(1, -(-len(manifest.items) // MAX_ITEMS))
    pages = [_page(owner, manifest, cut, number, count) for number in range(1, count + 1)]
    return pages[::-1]


def _page(owner: SliceOwner, manifest: Manifest, cut: Cut, page: int, count: int) -> Object:
    items = manifest.items[(page - 1) * MAX_ITEMS : page * MAX_ITEMS]
    spec: Object = {
        "placement": owner.name,
        "number": cut.number,
        "digest": manifest.digest,
        "items": [_item_object(each) for each in items],
        "inputs": {"what": manifest.inputs.what},
        "page": {"number": page, "of": count},
    }
    metadata: Object = {
        "name": revision_name(owner.name, cut.number, page),
        "labels": {SOURCE_PLACEMENT: label_for(owner.name)},
        "ownerReferences": [owner.reference()],
    }
    if page == 1:
        metadata["annotations"] = cut_annotations(cut.sequence, cut.name)
        if manifest.inputs.customizers:
            customizers = map(_customizer_object, manifest.inputs.customizers)
            spec["inputs"]["customizers"] = list(customizers)
        if cut.causes:
            spec["causes"] = [each.as_object() for each in cut.causes[:MAX_CAUSES]]
        if len(cut.causes) > MAX_CAUSES:
            spec["causesOmitted"] = len(cut.causes) - MAX_CAUSES
    return {
        "apiVersion": API_VERSION,
        "kind": "PlacementRevision",
        "metadata": metadata,
        "spec": spec,
    }


def cut_annotations(sequence: int, name: str = "") -> dict[str, str]:
    """Return what a revision says of the cut that it is the result of."""
    return {CUT_SEQUENCE: str(sequence), **({CUT: name} if name else {})}


def _item_object(each: RevisionItem) -> Object:
    found: Object = {
        "group": each.item.group,
        "resource": each.item.resource,
        "namespace": each.item.namespace,
        "name": each.item.name,
        "digest": each.digest,
        "resourceVersion": each.resource_version,
        "bytes": each.size,
    }
    if each.generation:
        found["generation"] = each.generation
    if each.storage_version:
        found["storageVersion"] = each.storage_version
    if each.no_rollback:
        found["noRollback"] = True
    return found


def _customizer_object(each: RevisionItem) -> Object:
    return {"namespace": each.item.namespace, "name": each.item.name, "digest": each.digest}


def content_object(name: str, content: Object) -> Object:
    """Return the RevisionContent of that name."""
    return {
        "apiVersion": API_VERSION,
        "kind": "RevisionContent",
        "metadata": {"name": name},
        "content": content,
    }


# -- reading -----------------------------------------------------------------------------------


class RevisionPage(NamedTuple):
    """What is kept of a PlacementRevision."""

    name: str
    uid: str
    placement: str
    number: int
    digest: str
    page: int
    pages: int
    items: tuple[RevisionItem, ...] = ()
    inputs: Inputs = Inputs("")
    sequence: int = 0
    cut: str = ""
    pinned: bool = False
    verdict: str = ""


def read_page(obj: Mapping[str, Any]) -> RevisionPage:
    """Return what a PlacementRevision says."""
    metadata, spec = obj["metadata"], obj["spec"]
    notes = metadata.get("annotations") or {}
    page, inputs = spec.get("page") or {}, spec.get("inputs") or {}
    return RevisionPage(
        metadata["name"],
        metadata.get("uid", ""),
        spec["placement"],
        spec["number"],
        spec["digest"],
        page.get("number", 1),
        page.get("of", 1),
        tuple(map(_item_of, spec.get("items") or ())),
        Inputs(inputs.get("what", ""), tuple(map(_customizer_of, inputs.get("customizers") or ()))),
        _number(notes.get(CUT_SEQUENCE, "")),
        notes.get(CUT, ""),
        notes.get(PIN) == "true",
        (obj.get("status") or {}).get("verdict", ""),
    )


def _item_of(each: Mapping[str, Any]) -> RevisionItem:
    ref = ObjectRef(
        "", each.get("group", ""), each["resource"], each.get("namespace", ""), each["name"]
    )
    return RevisionItem(
        ref,
        each["digest"],
        each.get("resourceVersion", ""),
        each.get("bytes", 0),
        each.get("generation", 0),
        each.get("storageVersion", ""),
        bool(each.get("noRollback")),
    )


def _customizer_of(each: Mapping[str, Any]) -> RevisionItem:
    return RevisionItem(customizer_ref(each["namespace"], each["name"]), each["digest"])


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and text.isascii() and len(text) <= _MAX_DIGITS else 0


def manifest_of(pages: Iterable[RevisionPage]) -> Manifest | None:
    """Return the manifest of a revision's pages; None unless all are there and agree.

    What does not add up to its digest was tampered with, and is as good as missing.
    """
    found = {each.page: each for each in pages}
    first = found.get(1)
    # Compared with no range of them: anybody may write that there are two billion.
    if first is None or len(found) != first.pages or max(found) != first.pages:
        return None
    items = (item for number in sorted(found) for item in found[number].items)
    manifest = Manifest(items, first.inputs)
    same = all(each.digest == first.digest for each in found.values())
    return manifest if same and manifest.digest == first.digest else None


def latest(pages: Sequence[RevisionPage]) -> RevisionPage | None:
    """Return the revision that the placement's objects were last found at.

    That is the one cut last, which need not have the highest number: when everything is as it was
    at an earlier revision, that one is cut again.
    """
    first = [each for each in pages if each.page == 1]
    return max(first, key=lambda each: (each.sequence, each.number), default=None)
