"""Requests that store no object of their own, as clients' rules see them.

To bind or evict a pod, to execute in one, to go through a proxy: webhooks and policies are shown
what was asked for (a Binding, an Eviction, options), as in Kubernetes. What mutating webhooks make
of it is what is done: they may choose another node, container or command.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlencode

from msgspec.structs import replace

from skerry.api.objects import Object
from skerry.kit.text import whole_number
from skerry.server.admission.operation import Admission, Operation, Validation, Verb
from skerry.server.request.call import Call

# Of what a client may say for each, what is a truth and what may be said several times.
_TRUTHS = ("stdin", "stdout", "stderr", "tty")
_SEVERAL = ("command", "ports")
_TRUE = frozenset(("1", "t", "T", "true", "True", "TRUE"))
_NAMED = {
    "exec": ("container", "command", *_TRUTHS),
    "attach": ("container", *_TRUTHS),
    "portforward": ("ports",),
}


class RequestJudge:
    """Has requests changed and judged by clients' rules."""

    def __init__(self, mutating: Admission, validation: Validation) -> None:
        self._mutating = mutating
        self._validation = validation

    async def changed(
        self, call: Call, obj: Object, verb: Verb = "CREATE", *, dry_run: bool = False
    ) -> Object:
        """Return what becomes of a request for *obj*; raises when that fails."""
        if self._validation.is_idle:
            return obj
        operation = _operation(call, obj, verb, dry_run=dry_run)
        await self._mutating.admit(operation)
        return operation.obj

    async def judge(
        self, call: Call, obj: Object, verb: Verb = "CREATE", *, dry_run: bool = False
    ) -> None:
        """Let a request pass that asks for *obj*, or raise an ApiError."""
        if not self._validation.is_idle:
            operation = _operation(call, obj, verb, dry_run=dry_run)
            await self._validation.validate(operation, lambda: operation.obj)

    async def connect(self, call: Call) -> Call:
        """Return what somebody connects to who asks as *call* does; raises an ApiError if none."""
        if self._validation.is_idle:
            return call
        options = _options(call)
        changed = await self.changed(call, options, "CONNECT")
        await self.judge(call, changed, "CONNECT")
        wanted = {name: value for name, value in changed.items() if name not in _MARKS}
        return call if wanted == options else _asking(call, wanted)


_MARKS = frozenset(("apiVersion", "kind", "metadata"))


def _operation(call: Call, obj: Object, verb: Verb, *, dry_run: bool) -> Operation:
    info, subresource = call.resource.info, call.info.subresource
    kind = next((s.kind for s in info.subresources if s.name == subresource), info.gvk)
    version = f"{kind.group}/{kind.version}" if kind.group else kind.version
    metadata: Object = {}
    if verb != "CONNECT":
        given = obj.get("metadata") or {}
        metadata = {"creationTimestamp": None, "namespace": call.namespace, **given}
    shown = {**obj, "metadata": metadata, "kind": kind.kind, "apiVersion": version}
    return Operation(call, verb, shown, dry_run=dry_run, subresource=subresource, asked=True)


def _asking(call: Call, options: Object) -> Call:
    """Return *call* as if it had asked with *options*."""
    if call.info.subresource == "proxy":
        rest = str(options.get("path") or "").removeprefix("/")
        return replace(call, info=replace(call.info, rest=rest))
    named = _NAMED.get(call.info.subresource, ())
    query = call.request.query_string
    pairs = [each for each in parse_qsl(query, keep_blank_values=True) if each[0] not in named]
    for name in named:
        value = options.get(name)
        values = value if isinstance(value, list) else [] if value is None else [value]
        pairs += [(name, "true" if one is True else str(one)) for one in values if one is not False]
    request = replace(call.request, query_string=urlencode(pairs), _query=None)
    return replace(call, request=request)


def _options(call: Call) -> dict[str, Any]:
    """Return the options of a connection, which its query holds."""
    if call.info.subresource == "proxy":
        return {"path": f"/{call.info.rest}"} if call.info.rest else {}
    pairs = parse_qsl(call.request.query_string, keep_blank_values=True)
    found: dict[str, Any] = {}
    for name in _NAMED.get(call.info.subresource, ()):
        values = [value for key, value in pairs if key == name]
        if not values:
            continue
        if name in _TRUTHS:
            if values[0] in _TRUE:
                found[name] = True
        elif name == "ports":
            numbers = map(whole_number, values)
            found[name] = [each for each in numbers if each is not None]
        else:
            found[name] = values if name in _SEVERAL else values[0]
    return found


def is_internal(operation: Operation) -> bool:
    """Tell whether an operation is only how the server carries out what was judged before."""
    return operation.subresource == "binding" and operation.verb == "UPDATE"
