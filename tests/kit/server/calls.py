"""Requests as the layers below the router are given them."""

from __future__ import annotations

from typing import Any

from skerry.logic.machinery.resource import Resource
from skerry.server.catalogue import TypeSet
from skerry.server.http.message import Request
from skerry.server.request.call import Call
from skerry.server.request.info import RequestInfo
from skerry.server.user import User
from tests.kit.machinery.objects import resource


def call_of(
    kind: Resource | None = None,
    *,
    user: User | None = None,
    request: Request | None = None,
    types: tuple[Resource, ...] = (),
    **info: Any,
) -> Call:
    """Return a request about *kind*, of ConfigMaps unless said."""
    kind = kind or resource("configmaps")
    asked = RequestInfo("", info.pop("verb", "get"), is_resource=True, **info)
    return Call(
        request or Request("GET", "/"), asked, user or User("ann"), kind, TypeSet((kind, *types))
    )
