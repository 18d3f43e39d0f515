"""Requests that store no object of their own, as clients' rules see them.

To bind or evict a pod, to execute in one, to go through a proxy: policies and validating webhooks
are shown what was asked for (a Binding, an Eviction, options), as in Kubernetes. Mutating webhooks
are not asked: there is nothing that would be stored as they answer.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

from skerry.api.objects import Object
from skerry.server.admission.operation import Operation, Validation, Verb
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
    """Has requests judged by clients' rules."""

    def __init__(self, validation: Validation) -> None:
        self._validation = validation

    async def judge(
        self, call: Call, obj: Object, verb: Verb = "CREATE", *, dry_run: bool = False
    ) -> None:
        """Let a request pass that asks for *obj*, or raise an ApiError."""
        if self._validation.is_idle:
            return
        info = call.resource.info
        subresource = call.info.subresource
        kind = next((s.kind for s in info.subresources if s.name == subresource), info.gvk)
        version = f"{kind.group}/{kind.version}" if kind.group else kind.version
        shown = {"metadata": {}, **obj, "kind": kind.kind, "apiVersion": version}
        operation = Operation(call, verb, shown, dry_run=dry_run, subresource=subresource)
        await self._validation.validate(operation, lambda: shown)

    async def connect(self, call: Call) -> None:
        """Let somebody connect to what a request names, or raise an ApiError."""
        if not self._validation.is_idle:
            await self.judge(call, _options(call), "CONNECT")


def _options(call: Call) -> dict[str, Any]:
    """Return the options of a connection, which its query holds."""
    if call.info.subresource == "proxy":
        return {"path": call.info.rest} if call.info.rest else {}
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
            found[name] = [int(each) for each in values if each.isdigit()]
        else:
            found[name] = values if name in _SEVERAL else values[0]
    return found


def is_internal(operation: Operation) -> bool:
    """Tell whether an operation is only how the server carries out what was judged before."""
    return operation.subresource == "binding" and operation.verb == "UPDATE"
