"""What the engine must know of a served type: discovery facts and the rules its objects obey.

Built-in kinds (``builtin``) and custom ones (``crd``) both come down to a ``Resource``; the REST
layer asks nothing else, so a kind is a kind wherever it came from.
Every rule is a pure function. Those that prepare or default an object change it in place: the
REST layer owns the object at that point.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from skerry.api.errors import FieldError
from skerry.api.kinds import ResourceInfo
from skerry.api.objects import Object
from skerry.api.schema import Schema
from skerry.logic.machinery.remote_conversion import ConversionWebhook


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a Table. ``priority`` 0 is always shown, others with ``-o wide``.

    ``cell`` takes the object and the present time: ages are text by the time they leave, counted
    from the moment the Table is made."""

    name: str
    type: str
    cell: Callable[[Object, datetime], Any]
    format: str = ""
    description: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Scale:
    """Where the scale subresource finds its numbers; paths are dotted, without a leading dot."""

    spec_replicas: str
    status_replicas: str
    label_selector: str = ""


def _nothing(_: Object) -> None:
    """Leave the object as it is."""


def _no_change(_: Object, __: Object) -> None:
    """Leave both objects as they are."""


def _no_errors(_: Object) -> list[FieldError]:
    return []


def _no_update_errors(_: Object, __: Object) -> list[FieldError]:
    return []


class Family:
    """The types that one definition brings, as content from which another process builds them.

    ``builder`` names how (``server.offload.families``); equal content has equal keys.
    """

    __slots__ = ("_key", "_text", "builder", "content")

    def __init__(self, builder: str, content: Mapping[str, Any] | None = None) -> None:
        self.builder = builder
        self.content = content
        self._text: bytes | None = None
        self._key = ""

    @property
    def text(self) -> bytes:
        """The content as JSON; worked out when first asked for, which is seldom."""
        if self._text is None:
            self._text = orjson.dumps(self.content, option=orjson.OPT_NON_STR_KEYS)
        return self._text

    @property
    def key(self) -> str:
        """What tells this family from others."""
        if not self._key:
            self._key = f"{self.builder}:{hashlib.blake2b(self.text, digest_size=16).hexdigest()}"
        return self._key


# In place of an identity: objects of this name whatever export they come from, or from none.
ANY_IDENTITY = "*"


@dataclass(frozen=True, slots=True)
class Resource:
    """A type as it is served at one version."""

    info: ResourceInfo
    schema: Schema
    # The version objects are stored at; reading at another goes through ``convert``.
    storage_version: str
    # Fill in what the client left out. Runs on create, update and read of old data.
    default: Callable[[Object], None] = _nothing
    # Kind-specific preparation: drop what clients may not set, bump what must be bumped.
    # ``prepare_update(new, old)``; status handling and generation are the REST layer's.
    prepare_create: Callable[[Object], None] = _nothing
    prepare_update: Callable[[Object, Object], None] = _no_change
    # Everything beyond the schema: ``validate_create(new)``, ``validate_update(new, old)``,
    # ``validate_status(new, old)`` for writes to the status subresource.
    validate_create: Callable[[Object], list[FieldError]] = _no_errors
    validate_update: Callable[[Object, Object], list[FieldError]] = _no_update_errors
    validate_status: Callable[[Object, Object], list[FieldError]] = _no_update_errors
    # Warnings for the client (deprecated fields and the like), reported on create and update.
    warnings: Callable[[Object], Sequence[str]] = field(default=lambda _: ())
    # What every request at this version is answered with: that it is deprecated.
    deprecation: tuple[str, ...] = ()
    # Return what is wrong with a name, nothing when it will do.
    check_name: Callable[[str], Sequence[str]] = field(default=lambda _: ())
    # ``metadata.generation`` counts changes of everything but metadata and status.
    counts_generation: bool = True
    # Whether status may come with a new object: kubelets register nodes with theirs.
    status_at_creation: bool = False
    columns: tuple[Column, ...] = ()
    # Field selectors beyond metadata.name and metadata.namespace.
    selectable_fields: Mapping[str, Callable[[Object], str]] = field(default_factory=dict)
    scale: Scale | None = None
    # ``convert(obj, version)`` returns the object at another served version; None: apiVersion
    # is rewritten and nothing else (conversion strategy None).
    convert: Callable[[Object, str], Object] | None = None
    # Seconds a delete gives the object when nobody says otherwise; None: it goes at once.
    grace_seconds: Callable[[Object], int | None] = field(default=lambda _: None)
    # Unknown fields: True drops them with a warning as built-in kinds and structural custom
    # kinds do.
    prunes: bool = True
    # Wrong types in built-in kinds fail decoding (400); in custom kinds validation (422).
    custom: bool = False
    # Keeps bound resources apart from local ones of the same name in the store.
    identity: str = ""
    # The group segment of the store key, where one stored type is seen through two groups
    # (Events); None: the type's own group.
    storage_group: str | None = None
    # The objects are being removed with their definition or binding: discovery tells of no verb
    # that would make or change one. New objects are refused by admission, changes are not.
    terminating: bool = False
    # What discovery tells of how objects are stored; empty: it is worked out.
    storage_hash: str = ""
    # Validating an object means compiling patterns and expressions that stand in it.
    compiles: bool = False
    # Who converts between versions where that is done elsewhere; ``convert`` then asks for it.
    webhook: ConversionWebhook | None = None
    # Objects stored up to this revision may be at another version than ``storage_version``, or
    # lack defaults that the schema has now: they are looked into to be shown. None: none are.
    since: int | None = None
    # Where the rules come from, for work in another process; None: they are known here only.
    family: Family | None = None
    # Worked out once, and needed by every request: whether there is a status subresource, and the
    # group and the resource segment of the store key.
    has_status: bool = field(init=False, repr=False, compare=False)
    stored_group: str = field(init=False, repr=False, compare=False)
    storage_resource: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        info, group = self.info, self.storage_group
        resource = f"{info.resource}:{self.identity}" if self.identity else info.resource
        has_status = any(sub.name == "status" for sub in info.subresources)
        object.__setattr__(self, "has_status", has_status)
        object.__setattr__(self, "stored_group", info.group if group is None else group)
        object.__setattr__(self, "storage_resource", resource)


# Adds to a type what its schema cannot say: warnings, further validation.
Extend = Callable[[Resource], Resource]


def as_is(resource: Resource) -> Resource:
    """Add nothing."""
    return resource
