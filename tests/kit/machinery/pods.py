"""Pods for the tests of Pod Security: one that keeps every rule, and ways to break one."""

from __future__ import annotations

from typing import Any

from skerry.api.objects import Object


def container(name: str = "app", **security: Any) -> Object:
    """Return a container; without a security context when nothing is said of it."""
    found: Object = {"name": name, "image": "registry.example/app:1"}
    return {**found, "securityContext": security} if security else found


def hardened(name: str = "app", **security: Any) -> Object:
    """Return a container that keeps the restricted level, but for what *security* says."""
    kept = {
        "allowPrivilegeEscalation": False,
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    return container(name, **{**kept, **security})


def spec_of(*containers: Object, **spec: Any) -> Object:
    return {"containers": list(containers), **spec}
