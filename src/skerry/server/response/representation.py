"""Stored values as the bytes of an answer: as they are, at another version, as Table or metadata.

The plain case, JSON at the stored version, never decodes anything.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Hashable, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

import yaml

from skerry.api.objects import Object
from skerry.logic.machinery.printing import partial_metadata, render_table
from skerry.logic.machinery.resource import Resource
from skerry.server.change import Form
from skerry.server.codec import decode, dump, item_wire, partial_wire, wire
from skerry.server.request.versions import from_storage
from skerry.server.response.negotiate import Negotiated

Cut = Callable[[bytes, int], bytes]
# Writing a value as YAML takes 30 us.
_YAML_COST = 8
_TYPE_META = frozenset(("apiVersion", "kind"))
_BLUEPRINT = "kubernetes.io/initial-events-list-blueprint"


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
        # Up to this revision, objects are not sent as they are stored all the same.
        self._since = (resource.since or 0) if self._cut is wire else 0

    @cached_property
    def _cut_item(self) -> Cut | None:
        """The same for an item of a list, which says the kind once for all of them."""
        return item_wire if self._cut is wire and not self._resource.custom else self._cut

    @property
    def splices(self) -> bool:
        """Whether objects are sent as stored, without decoding."""
        return self._cut is wire and not self._pretty and not self._since

    @property
    def decodes(self) -> bool:
        """Whether an object is decoded to be shown."""
        return self._cut is None or self._pretty

    @property
    def pretty(self) -> bool:
        """Whether JSON is indented, for a person to read."""
        return self._pretty and not self._negotiated.yaml

    @property
    def list_field(self) -> str:
        """Where a list has what it lists."""
        return "rows" if self._negotiated.shape == "table" else "items"

    @property
    def cost(self) -> int:
        """How many times as long as decoding it takes to show a value, about."""
        return _YAML_COST if self._negotiated.yaml else 1

    @property
    def content_type(self) -> str:
        return "application/yaml" if self._negotiated.yaml else "application/json"

    def spliced(self, value: bytes, revision: int) -> bytes | None:
        """Return the body that shows one stored object; None if that must be decoded for it."""
        if self._cut is not None and not self._pretty and revision > self._since:
            return self._cut(value, revision)
        return None

    def one(self, value: bytes, revision: int) -> bytes:
        """Return the body that shows one stored object."""
        if self._cut is not None and not self._pretty and revision > self._since:
            return self._cut(value, revision)
        return self.body(self.shaped(self.at_version(decode(value, revision))))

    def of_object(self, obj: Object) -> bytes:
        """Return the body that shows *obj*, which is at the stored version."""
        return self.body(self.shaped(self.at_version(obj)))

    def of_objects(self, objects: Sequence[Object]) -> bytes:
        """Return the body that lists *objects*, which are not stored."""
        if self._negotiated.shape == "table":
            return self.body(self._table(objects, {}))
        items = [self._item(self.shaped(obj)) for obj in objects]
        return self.body({**self._list_head(), "metadata": {}, "items": items})

    def at_version(self, obj: Object) -> Object:
        """Return *obj* at the version the request speaks."""
        info = self._resource.info
        if (
            obj.get("apiVersion") == info.api_version
            and self._resource.convert is None
            and self._resource.since is None
        ):
            return obj
        return from_storage(self._resource, obj)

    def shaped(self, obj: Object) -> dict[str, Any]:
        """Return *obj* in the agreed shape."""
        if self._negotiated.shape == "table":
            version = obj["metadata"].get("resourceVersion")
            return self._table([obj], {"resourceVersion": version} if version else {})
        if self._negotiated.shape == "metadata":
            return partial_metadata(obj)
        return obj

    def body(self, document: dict[str, Any]) -> bytes:
        """Return *document* in the agreed encoding."""
        if self._negotiated.yaml:
            return _yaml(document)
        return dump(document, pretty=self._pretty)

    def _table(
        self, objects: Sequence[Object], metadata: dict[str, Any], *, headers: bool = True
    ) -> dict[str, Any]:
        columns, now = self._resource.columns, self._now()
        return render_table(columns, objects, now, self._include, metadata, headers=headers)

    def item(self, value: bytes, revision: int) -> bytes:
        """Return a stored object as an item of a list."""
        if self._cut_item is not None and not self._pretty and revision > self._since:
            return self._cut_item(value, revision)
        obj = self.at_version(decode(value, revision))
        if self._negotiated.shape == "table":
            return self._encoded_item(self._table([obj], {})["rows"][0])
        return self._encoded_item(self._item(self.shaped(obj)))

    def _item(self, shown: dict[str, Any]) -> dict[str, Any]:
        if self._resource.custom or self._negotiated.shape == "metadata":
            return shown
        return {name: value for name, value in shown.items() if name not in _TYPE_META}

    def _encoded_item(self, item: dict[str, Any]) -> bytes:
        # The lines of one item are the same whatever stands around them.
        return _yaml([item]) if self._negotiated.yaml else dump(item)

    def around(self, metadata: dict[str, Any], *, empty: bool) -> tuple[bytes, bytes, bytes]:
        """Return what stands before, between and after the items of a list."""
        name = self.list_field
        if self._resource.custom and self._negotiated.shape == "object":
            # Lists that no Go type stands behind say also that there is no next page.
            metadata = {"continue": "", **metadata}
        document: dict[str, Any] = {**self._list_head(), "metadata": metadata}
        if self._negotiated.shape == "table":
            document = self._table([], metadata)
            del document[name]
        if self._negotiated.yaml:
            before = {key: value for key, value in document.items() if key < name}
            after = {key: value for key, value in document.items() if key > name}
            head = _yaml(before) + name.encode() + (b": []\n" if empty else b":\n")
            return head, b"", _yaml(after) if after else b""
        # The closing brace makes way for the items.
        return dump(document)[:-1] + b',"%b":[' % name.encode(), b",", b"]}"

    def around_items(self, metadata: dict[str, Any]) -> tuple[bytes, bytes]:
        """Return what stands before and after the items of a list that is spliced."""
        head, _, tail = self.around(metadata, empty=False)
        return head, tail

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
        if self._cut is not None and not self._since:
            return Form(key=self._cut, render=self._cut)
        if self._cut is not None:
            return Form(key=(wire, info.gvr, self._since), render=self._recent_line)
        headless = negotiated.shape == "table" and not first
        key: Hashable = (info.gvr, negotiated.shape, self._include, headless)
        return Form(key=key, render=self._row_line if headless else self._line)

    def _recent_line(self, value: bytes, revision: int) -> bytes:
        return wire(value, revision) if revision > self._since else self._line(value, revision)

    def _line(self, value: bytes, revision: int) -> bytes:
        return dump(self.shaped(self.at_version(decode(value, revision))))

    def _row_line(self, value: bytes, revision: int) -> bytes:
        obj = self.at_version(decode(value, revision))
        return dump(self._table([obj], {"resourceVersion": str(revision)}, headers=False))

    def _empty_list(self) -> bytes:
        """Return what clients that ask for a list make it of when it comes as a stream."""
        return dump({**self._list_head(), "metadata": {}, "items": []})

    def bookmark(self, revision: int, *, initial_events_end: bool) -> bytes:
        """Return the object of a bookmark event."""
        info = self._resource.info
        metadata: dict[str, Any] = {"resourceVersion": str(revision), "creationTimestamp": None}
        if initial_events_end:
            metadata["annotations"] = {
                "k8s.io/initial-events-end": "true",
                _BLUEPRINT: b64encode(self._empty_list()).decode(),
            }
        if self._negotiated.shape == "table":
            return dump(self._table([], metadata))
        if self._negotiated.shape == "metadata":
            head = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
            return dump({**head, "metadata": metadata})
        head = {"kind": info.kind, "apiVersion": info.api_version}
        return dump({**head, "metadata": metadata})


def _cut(resource: Resource, negotiated: Negotiated) -> Cut | None:
    if negotiated.yaml or (resource.convert is not None and resource.webhook is None):
        return None
    if negotiated.shape == "metadata":
        # It looks the same at every version.
        return partial_wire
    as_stored = resource.info.version == resource.storage_version
    return wire if negotiated.shape == "object" and as_stored else None


def _yaml(document: Any) -> bytes:
    text: str = yaml.dump(document, Dumper=_GoDumper, sort_keys=True)
    return text.encode()


class _GoDumper(yaml.CSafeDumper):
    """Quotes what Go's YAML reads as a boolean though Python's does not."""


_GoDumper.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile("^(?:y|Y|n|N)$"), ["y", "Y", "n", "N"]
)
