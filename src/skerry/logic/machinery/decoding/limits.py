"""How large, deep and dense a document from a client may be."""

from __future__ import annotations

from dataclasses import dataclass


class DecodeError(ValueError):
    """The text is not a document that JSON can represent."""


class LimitExceeded(DecodeError):
    """The document is well-formed as far as it was read, and there is too much of it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one document. The size of its text is the transport's to limit."""

    depth: int = 200
    """Max nesting of lists and objects. A CustomResourceDefinition with a schema of twenty levels
    needs about fifty; recursion over what is stored stays harmless below 200."""

    nodes: int = 100_000
    """Max values in a document. A list or object counts beside its members, as two where it is
    empty; what YAML aliases and merge keys repeat counts each time. The largest objects in use
    (definitions of 1 MB, EndpointSlices) stay below 40,000, and decoding 100,000 takes about
    15 ms."""

    expanded_bytes: int = 3 * 1024 * 1024
    """Max bytes that YAML aliases and merge keys may repeat: as much as a body may have."""

    repeated_values: int = 10_000
    """Max values that YAML aliases and merge keys may repeat; a short text can ask for any
    number."""

    aliases: int = 1_000
    """Max YAML aliases. People write a few; each costs a look-up and a copy."""

    tag_directives: int = 100
    """Max ``%TAG`` directives; libyaml compares each with all before it."""


DEFAULT_LIMITS = Limits()
