"""Revisions for tests."""

from __future__ import annotations

from hypothesis import strategies as st

from skerry.api.edge import SliceOwner
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.revision.causes import Cause
from skerry.logic.fleet.revision.manifest import (
    Inputs,
    Manifest,
    RevisionItem,
    content_digest,
    customizer_ref,
)
from skerry.logic.fleet.revision.objects import Cut, RevisionPage, read_page, revision_objects

OWNER = SliceOwner("web", "uid-web")


def ref(name: str, namespace: str = "shop") -> ObjectRef:
    return ObjectRef("", "", "configmaps", namespace, name)


def item(name: str, proof: bytes = b"1", version: str = "7") -> RevisionItem:
    return RevisionItem(ref(name), content_digest(ref(name), proof), version, 10)


def manifest(contents: dict[str, bytes], what: str = "77", customizer: bytes = b"") -> Manifest:
    own = customizer_ref("shop", "c")
    customizers = (RevisionItem(own, content_digest(own, customizer)),) if customizer else ()
    items = (item(name, proof) for name, proof in contents.items())
    return Manifest(items, Inputs(what, customizers))


def pages(found: Manifest, number: int, sequence: int = 0, name: str = "") -> list[RevisionPage]:
    cut = Cut(number, sequence or number, name=name)
    return [read_page(stored(each)) for each in revision_objects(OWNER, found, cut)]


def stored(obj: Object) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "uid": f"uid-{obj['metadata']['name']}"}}


def caused(name: str) -> Cause:
    return Cause(ref(name), "9")


contents = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from([b"1", b"2", b"3"]))
