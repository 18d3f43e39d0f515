"""Stored values as the bytes of an answer: as they are, at another version, as Table or metadata.

The plain case, JSON at the stored version, never decodes anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from datetime import datetime
from typing import Any

import yaml

from skerry.logic.printing import partial_metadata, render_table
from skerry.logic.resource import Object, Resource
from skerry.server.codec import decode, dump, item_wire, partial_wire, wire
from skerry.server.rest.negotiate import Negotiated
from skerry.server.rest.versions import from_storage
from skerry.server.watch.change import Form

Cut = Callable[[bytes, int], bytes]
# As many objects of an ordinary size as make a block that is worth sending.
_ITEMS_PER_PART = 32
_TYPE_META = frozenset(("apiVersion", "kind"))


class Representation:
    """How one answer shows objects of one type."""

    def __init__(
        self,
        resource: Resource,
        negotiated: Negotiated,
        now: Callable[[], datetime],
        *,
        include_object: str = "",
        pretty: bool = False,
    ) -> None:
        self._resource = resource
        self._negotiated = negotiated
        self._now = now
        self._include = include_object or "Metadata"
        self._pretty = pretty
        # How objects are made of what is stored without decoding it, if that can be done.
        self._cut = _cut(resource, negotiated)
        # The same for an item of a list, which says the kind once for all of them.
        self._cut_item = self._cut
        if self._cut is wire and not resource.custom:
            self._cut_item = item_wire

    @property
    def splices(self) -> bool:
        """Whether objects are sent as stored, without decoding."""
        return self._cut is wire and not self._pretty

    @property
    def decodes(self) -> bool:
        """Whether an object is decoded to be shown."""
        return self._cut is None or self._pretty

    @property
    def content_type(self) -> str:
        return "application/yaml" if self._negotiated.yaml else "application/json"

    def one(self, value: bytes, revision: int) -> bytes:
        """Return the body that shows one stored object."""
        if self._cut is not None and not self._pretty:
            return self._cut(value, revision)
        return self.body(self.shaped(self.at_version(decode(value, revision))))

    def of_object(self, obj: Object) -> bytes:
        """Return the body that shows *obj*, which is at the stored version."""
        return self.body(self.shaped(self.at_version(obj)))

    def at_version(self, obj: Object) -> Object:
        """Return *obj* at the version the request speaks."""
        info = self._resource.info
        if obj.get("apiVersion") == info.api_version and self._resource.convert is None:
            return obj
        return from_storage(self._resource, obj)

    def shaped(self, obj: Object) -> dict[str, Any]:
        """Return *obj* in the agreed shape."""
        if self._negotiated.shape == "table":
            metadata = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
            return self._table([obj], metadata)
        if self._negotiated.shape == "metadata":
            return partial_metadata(obj)
        return obj

    def body(self, document: dict[str, Any]) -> bytes:
        """Return *document* in the agreed encoding."""
        if self._negotiated.yaml:
            return yaml.dump(document, Dumper=_GoDumper, sort_keys=True).encode()
        return dump(document, pretty=self._pretty)

    def _table(
        self, objects: Sequence[Object], metadata: dict[str, Any], *, headers: bool = True
    ) -> dict[str, Any]:
        columns, now = self._resource.columns, self._now()
        return render_table(columns, objects, now, self._include, metadata, headers=headers)

    def collection(
        self, items: Sequence[tuple[bytes, int]], metadata: dict[str, Any]
    ) -> bytes | Sequence[bytes]:
        """Return the body of a list of stored objects."""
        if self._cut_item is not None and not self._pretty:
            return self._spliced_list(items, metadata, self._cut_item)
        objects = [self.at_version(decode(value, revision)) for value, revision in items]
        if self._negotiated.shape == "table":
            return self.body(self._table(objects, metadata))
        shown = [self._item(self.shaped(obj)) for obj in objects]
        return self.body({**self._list_head(), "metadata": metadata, "items": shown})

    def _item(self, shown: dict[str, Any]) -> dict[str, Any]:
        if self._resource.custom or self._negotiated.shape == "metadata":
            return shown
        return {name: value for name, value in shown.items() if name not in _TYPE_META}

    def item(self, value: bytes, revision: int) -> bytes:
        """Return a stored object as an item of a list; only where ``splices`` says so."""
        return item_wire(value, revision) if self._cut_item is item_wire else wire(value, revision)

    def _spliced_list(
        self, items: Sequence[tuple[bytes, int]], metadata: dict[str, Any], cut: Cut
    ) -> Sequence[bytes]:
        head, tail = self.around_items(metadata)
        parts = [head]
        # Joined here, a few at a time: ten thousand parts would each be looked at again.
        for start in range(0, len(items), _ITEMS_PER_PART):
            some = [
                cut(value, revision) for value, revision in items[start : start + _ITEMS_PER_PART]
            ]
            if start:
                some[0] = b"," + some[0]
            parts.append(b",".join(some))
        parts.append(tail)
        return parts

    def around_items(self, metadata: dict[str, Any]) -> tuple[bytes, bytes]:
        """Return what stands before and after the items of a list that is spliced."""
        head = dump({**self._list_head(), "metadata": metadata})
        # The closing brace makes way for the items.
        return head[:-1] + b',"items":[', b"]}"

    def _list_head(self) -> dict[str, str]:
        if self._negotiated.shape == "metadata":
            return {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
        info = self._resource.info
        return {"kind": info.list_kind or f"{info.kind}List", "apiVersion": info.api_version}

    def form(self, *, first: bool) -> Form:
        """Return this representation as a watch needs it: one line per object.

        Of Tables only the *first* in a watch tells its columns.
        """
        info, negotiated = self._resource.info, self._negotiated
        if self._cut is not None:
            return Form(key=self._cut, render=self._cut)
        headless = negotiated.shape == "table" and not first
        key: Hashable = (info.gvr, negotiated.shape, self._include, headless)
        return Form(key=key, render=self._row_line if headless else self._line)

    def _line(self, value: bytes, revision: int) -> bytes:
        return dump(self.shaped(self.at_version(decode(value, revision))))

    def _row_line(self, value: bytes, revision: int) -> bytes:
        obj = self.at_version(decode(value, revision))
        return dump(self._table([obj], {"resourceVersion": str(revision)}, headers=False))

    def bookmark(self, revision: int, *, initial_events_end: bool) -> bytes:
        """Return the object of a bookmark event."""
        info = self._resource.info
        metadata: dict[str, Any] = {"resourceVersion": str(revision), "creationTimestamp": None}
        if initial_events_end:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        if self._negotiated.shape == "table":
            return dump(self._table([], metadata))
        if self._negotiated.shape == "metadata":
            head = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
            return dump({**head, "metadata": metadata})
        head = {"kind": info.kind, "apiVersion": info.api_version}
        return dump({**head, "metadata": metadata})


def _cut(resource: Resource, negotiated: Negotiated) -> Cut | None:
    if negotiated.yaml or resource.convert is not None:
        return None
    if negotiated.shape == "metadata":
        # It looks the same at every version.
        return partial_wire
    as_stored = resource.info.version == resource.storage_version
    return wire if negotiated.shape == "object" and as_stored else None


class _GoDumper(yaml.CSafeDumper):
    """Quotes what Go's YAML reads as a boolean though Python's does not."""


_GoDumper.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile("^(?:y|Y|n|N)$"), ["y", "Y", "n", "N"]
)
