"""Protobuf bodies of built-in kinds to JSON-shaped objects and back."""

from __future__ import annotations

from skerry.logic.machinery.protobuf.decode import decode
from skerry.logic.machinery.protobuf.encode import encode

__all__ = ["decode", "encode"]
