"""What an object of a kind may look like: one form for built-in kinds and custom ones.

Validation, pruning, defaulting, strategic merge, server-side apply and OpenAPI all read this
form. It is built lazily from an OpenAPI v3 (or JSON) schema: children are made when first asked
for and shared through ``Definitions``, so the recursive and very large schemas of Kubernetes cost
only what is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

RawSchema = Mapping[str, Any]


class _Missing:
    """The type of ``MISSING``: no default was given (``None`` is a default one may give)."""

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING: Final = _Missing()


class Definitions:
    """Named schemas that refer to each other by ``$ref``."""

    def __init__(self, raw: Mapping[str, RawSchema] | None = None) -> None:
        self.raw: Mapping[str, RawSchema] = raw or {}
        self._built: dict[str, Schema] = {}

    def get(self, name: str) -> Schema:
        """Return the schema called *name*, the same one each time."""
        schema = self._built.get(name)
        if schema is None:
            schema = self._built[name] = Schema(self.raw[name], self, name)
        return schema

    def resolve(self, raw: RawSchema) -> Schema:
        """Return the schema *raw* means; text beside a ``$ref`` refines what it refers to."""
        reference = raw.get("$ref")
        if reference is None:
            return Schema(raw, self)
        name = reference.rsplit("/", 1)[-1]
        extra = {key: value for key, value in raw.items() if key not in ("$ref", "description")}
        if not extra:
            return self.get(name)
        return Schema({**self.raw[name], **extra}, self, name)


_EMPTY = Definitions()

# Types of Kubernetes that JSON Schema cannot name; found by the end of the definition's name.
_INT_OR_STRING = "intstr.IntOrString"
_QUANTITY = "api.resource.Quantity"
_RAW_EXTENSION = "runtime.RawExtension"


class Schema:
    """One node of a schema.

    ``type`` is ``""`` where anything goes. ``list_type`` is ``atomic``, ``set`` or ``map``
    (``atomic`` when nothing is said), ``map_type`` ``granular`` or ``atomic``. ``merge_key`` and
    ``patch_strategy`` steer strategic merge patch. ``granular`` tells whether a map of this schema
    has fields of its own rather than being one, ``associative`` whether elements of a list are
    known by value or key, not by place. Value rules (enum, bounds, ``allOf`` ...) are
    read from ``raw`` by the validator.
    """

    __slots__ = (
        "_additional",
        "_items",
        "_properties",
        "associative",
        "default",
        "definitions",
        "embedded",
        "format",
        "forms",
        "granular",
        "int_or_string",
        "list_keys",
        "list_type",
        "map_type",
        "merge_key",
        "name",
        "nullable",
        "patch_strategy",
        "preserve_unknown",
        "raw",
        "required",
        "type",
    )

    def __init__(
        self, raw: RawSchema, definitions: Definitions | None = None, name: str = ""
    ) -> None:
        self.raw = raw
        self.definitions = definitions or _EMPTY
        self.name = name
        # What was compiled from this schema, by what it is for; it lives as long as the schema.
        self.forms: dict[object, Any] | None = None
        declared = raw.get("type", "")
        names = [declared] if isinstance(declared, str) else list(declared)
        self.nullable: bool = bool(raw.get("nullable", False)) or "null" in names
        self.type: str = next((item for item in names if item != "null"), "")
        self.format: str = raw.get("format", "")
        self.int_or_string: bool = (
            bool(raw.get("x-kubernetes-int-or-string", False))
            or self.format == "int-or-string"
            or name.endswith(_INT_OR_STRING)
        )
        if name.endswith(_QUANTITY):
            self.format = "quantity"
        self.preserve_unknown: bool = bool(raw.get("x-kubernetes-preserve-unknown-fields", False))
        self.embedded: bool = bool(raw.get("x-kubernetes-embedded-resource", False))
        self.default: Any = raw.get("default", MISSING)
        self.required: tuple[str, ...] = tuple(raw.get("required") or ())
        self.list_type: str = raw.get("x-kubernetes-list-type", "atomic")
        self.list_keys: tuple[str, ...] = tuple(raw.get("x-kubernetes-list-map-keys") or ())
        self.map_type: str = raw.get("x-kubernetes-map-type", "granular")
        self.merge_key: str = raw.get("x-kubernetes-patch-merge-key", "")
        self.patch_strategy: tuple[str, ...] = tuple(
            filter(None, raw.get("x-kubernetes-patch-strategy", "").split(","))
        )
        self.granular: bool = self._is_granular()
        self.associative: bool = self._is_associative()
        self._properties: dict[str, Schema] = {}
        self._items: Schema | None = None
        self._additional: Schema | None = None

    def _is_granular(self) -> bool:
        if self.map_type == "atomic" or self.type not in ("object", ""):
            return False
        if self.int_or_string or self.format == "quantity":
            return False
        # Its content is not the API's to understand.
        return not self.name.endswith(_RAW_EXTENSION)

    def _is_associative(self) -> bool:
        if self.type not in ("array", ""):
            return False
        if "x-kubernetes-list-type" in self.raw:
            return self.list_type in ("set", "map")
        return "merge" in self.patch_strategy

    @property
    def description(self) -> str:
        return str(self.raw.get("description", ""))

    @property
    def property_names(self) -> Mapping[str, RawSchema]:
        """The declared properties, unbuilt; use for membership and iteration over names."""
        properties: Mapping[str, RawSchema] = self.raw.get("properties") or {}
        return properties

    def field(self, name: str) -> Schema | None:
        """Return the schema of the declared property *name*."""
        child = self._properties.get(name)
        if child is None:
            raw = self.property_names.get(name)
            if raw is None:
                return None
            child = self._properties[name] = self.definitions.resolve(raw)
        return child

    def properties(self) -> Iterator[tuple[str, Schema]]:
        """Yield every declared property with its schema."""
        for name in self.property_names:
            child = self.field(name)
            if child is not None:
                yield name, child

    @property
    def items(self) -> Schema | None:
        """The schema of a list's elements."""
        if self._items is None and self.raw.get("items") is not None:
            self._items = self.definitions.resolve(self.raw["items"])
        return self._items

    @property
    def additional(self) -> Schema | None:
        """The schema of a map's values; any value where ``additionalProperties`` is true."""
        if self._additional is None:
            raw = self.raw.get("additionalProperties")
            if isinstance(raw, Mapping):
                self._additional = self.definitions.resolve(raw)
            elif raw is True:
                self._additional = ANY
        return self._additional

    def child(self, name: str) -> Schema | None:
        """Return the schema of the member *name* of an object, declared or additional."""
        found = self._properties.get(name)
        return found if found is not None else self.field(name) or self.additional

    def __repr__(self) -> str:
        return f"Schema({self.name or self.type or 'any'})"


ANY = Schema({"x-kubernetes-preserve-unknown-fields": True})
