"""The namespace that the core controllers are tried on."""

from __future__ import annotations

from skerry.runtime.index import Key

NAMESPACE = Key("root", "", "ns")
