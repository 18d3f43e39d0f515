"""What Kubernetes says of a text whose ``apiVersion`` and ``kind`` it cannot read."""

from __future__ import annotations

from typing import Any, Final

from skerry.logic.machinery.patch.values import json_kind

NO_TYPE: Final = "couldn't get version/kind; json parse error"
_TYPE_META: Final = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
    'Kind string "json:\\"kind,omitempty\\"" }'
)
_SHOWN_BYTES: Final = 30


def no_object(value: Any) -> str:
    """Return the sentence about a *value* that is not even an object."""
    kind = json_kind(value)
    return f"{NO_TYPE}: json: cannot unmarshal {kind} into Go value of type {_TYPE_META}"


def unrecognized(kind: str, why: str, body: bytes) -> str:
    """Return the sentence about a *body* that should be a *kind*: with how it begins.

    What does not look like JSON is shown in hexadecimal digits.
    """
    begins = body[:_SHOWN_BYTES]
    shown = begins.decode(errors="replace") if body.startswith(b"{") else begins.hex()
    if len(body) > _SHOWN_BYTES:
        shown += " ..."
    text = f"the object provided is unrecognized (must be of type {kind})"
    return f"{text}: {why} ({shown or '<empty>'})"
