"""The manifest of a revision: each object by the digest of its content.

The digest of an object stands for who it is and what is copied of it. So one RevisionContent
belongs to one object, and serves every revision in which that object is the same, of every
placement of the workspace. The digest of a manifest stands for all of its objects and inputs and
for nothing else: two cuts of the same state give the same, whenever and by whomever they are made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

import orjson

from skerry.api.edge import CUSTOMIZERS
from skerry.api.refs import ObjectRef

_DIGEST_BYTES = 16


class RevisionItem(NamedTuple):
    """One object of a revision; ``item`` names no cluster.

    ``resource_version`` and ``generation`` are those of the source when the revision was cut,
    ``size`` that of the content: they change with a status too, and are part of no digest. What
    follows tells a rollout what cannot be taken back, and is part of the content.
    """

    item: ObjectRef
    digest: str
    resource_version: str = ""
    size: int = 0
    generation: int = 0
    storage_version: str = ""
    no_rollback: bool = False


class Inputs(NamedTuple):
    """What else decides about copies: a digest of what is selected by, and the Customizers."""

    what: str
    customizers: tuple[RevisionItem, ...] = ()


class Manifest:
    """A revision of a placement, without its number."""

    def __init__(self, items: Iterable[RevisionItem], inputs: Inputs) -> None:
        self.items = tuple(sorted(items))
        self.inputs = inputs._replace(customizers=tuple(sorted(inputs.customizers)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Manifest) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @cached_property
    def by_item(self) -> dict[ObjectRef, RevisionItem]:
        """The objects by their identity; Customizers are among them, as they never travel."""
        return {each.item: each for each in (*self.items, *self.inputs.customizers)}

    @cached_property
    def namespaces(self) -> tuple[ObjectRef, ...]:
        """The Namespaces it has."""
        return tuple(each.item for each in self.items if _is_namespace(each.item))

    @cached_property
    def digest(self) -> str:
        """Stands for everything that decides what is sent."""
        items = [(*each.item[1:], each.digest) for each in self.items]
        customizers = [(*each.item[1:], each.digest) for each in self.inputs.customizers]
        return _hashed((items, self.inputs.what, customizers))

    @property
    def names(self) -> set[str]:
        """The RevisionContents that the revision is made of."""
        return {each.digest for each in (*self.items, *self.inputs.customizers)}


def content_digest(item: ObjectRef, proof: bytes) -> str:
    """Return the digest of *item* with a content that *proof* stands for."""
    hashed = hashlib.blake2b(proof, digest_size=_DIGEST_BYTES)
    for part in item[1:]:
        text = part.encode()
        hashed.update(b"%d:" % len(text))
        hashed.update(text)
    return hashed.hexdigest()


def input_digest(value: object) -> str:
    """Return the digest of anything that JSON can say."""
    return _hashed(value)


def customizer_ref(namespace: str, name: str) -> ObjectRef:
    """Return the identity of a Customizer within its workspace."""
    return ObjectRef("", *CUSTOMIZERS.group_resource, namespace, name)


def _is_namespace(item: ObjectRef) -> bool:
    return not item.group and item.resource == "namespaces"


def _hashed(value: object) -> str:
    text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).hexdigest()
