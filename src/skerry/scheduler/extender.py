"""Extenders: other processes that have a say, asked over HTTP.

After all filters each interested extender may turn further nodes down; before selection it may
add points; it may object to preemption victims and may do the binding itself. Keys of its JSON are
Go field names, read without regard to case. An *ignorable* extender that fails is passed over;
any other failure fails the attempt.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ssl
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import orjson

from skerry.runtime.http import HttpTransport
from skerry.runtime.kubeconfig import ClientConfig, tls_context
from skerry.runtime.transport import Transport, TransportError
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.cache.table import NodeTable
from skerry.scheduler.config.errors import ConfigurationError
from skerry.scheduler.config.load import ExtenderSpec
from skerry.scheduler.cycle import Found
from skerry.scheduler.framework.handle import ExtenderError
from skerry.scheduler.framework.status import Status, unresolvable, unschedulable
from skerry.scheduler.table import Rows

# What rejecting by an extender is blamed on; such pods are retried after any event.
EXTENDER_NAME = "Extender"
# Extenders score 0 to 10, plugins 0 to 100.
_POINTS = 10


class HttpExtender:
    """One configured extender."""

    def __init__(self, spec: ExtenderSpec, transport: Transport | None = None) -> None:
        self._spec = spec
        self.name = spec.url_prefix
        self.ignorable = spec.ignorable
        self._path = urlsplit(spec.url_prefix).path.rstrip("/")
        self._transport = transport or _transport(spec)
        self._asking = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def filters(self) -> bool:
        return bool(self._spec.filter_verb)

    @property
    def prioritizes(self) -> bool:
        return bool(self._spec.prioritize_verb)

    @property
    def preempts(self) -> bool:
        return bool(self._spec.preempt_verb)

    @property
    def binds(self) -> bool:
        return bool(self._spec.bind_verb)

    def interested(self, pod: PodInfo) -> bool:
        """Tell whether the pod uses a resource the extender manages; without any, always."""
        managed = self._spec.managed_resources
        if not managed:
            return True
        containers = [
            *(pod.pod["spec"].get("containers") or ()),
            *(pod.pod["spec"].get("initContainers") or ()),
        ]
        return any(
            name in managed
            for container in containers
            for part in ("requests", "limits")
            for name in ((container.get("resources") or {}).get(part) or {})
        )

    async def filter(
        self, pod: PodInfo, names: Sequence[str], table: NodeTable
    ) -> tuple[list[str], dict[str, str], dict[str, str]]:
        """Return who passes, who fails, and who fails beyond cure, with messages."""
        answer = await self._ask(self._spec.filter_verb, self._arguments(pod, names, table))
        if answer.get("error"):
            raise ExtenderError(str(answer["error"]))
        if self._spec.node_cache_capable and answer.get("nodenames") is not None:
            passed = [str(name) for name in answer["nodenames"]]
        elif answer.get("nodes") is not None:
            items = _folded(answer["nodes"]).get("items") or ()
            passed = [str(item["metadata"]["name"]) for item in items]
        else:
            passed = []
        for name in passed:
            if name not in table:
                raise ExtenderError(
                    f'extender "{self.name}" claims a filtered node "{name}" which is not found '
                    "in the input node list"
                )
        failed = answer.get("failednodes") or {}
        hopeless = answer.get("failedandunresolvablenodes") or {}
        return passed, dict(failed), dict(hopeless)

    async def prioritize(
        self, pod: PodInfo, names: Sequence[str], table: NodeTable
    ) -> dict[str, int]:
        """Return extra points by node, weighted and on the plugins' scale."""
        answer = await self._post(self._spec.prioritize_verb, self._arguments(pod, names, table))
        if not isinstance(answer, list):
            raise ExtenderError(f'extender "{self.name}": want a list of host priorities')
        points: dict[str, int] = {}
        for item in answer:
            entry = _folded(item)
            score = int(entry.get("score", 0)) * self._spec.weight * _POINTS
            points[str(entry.get("host", ""))] = score
        return points

    async def process_preemption(
        self, pod: PodInfo, victims: Mapping[str, tuple[Sequence[PodInfo], int]]
    ) -> dict[str, tuple[list[PodInfo], int]]:
        """Return the candidates the extender agrees with."""
        body: dict[str, Any] = {"Pod": pod.pod}
        if self._spec.node_cache_capable:
            body["NodeNameToMetaVictims"] = {
                node: {"Pods": [{"UID": p.uid} for p in pods], "NumPDBViolations": count}
                for node, (pods, count) in victims.items()
            }
        else:
            body["NodeNameToVictims"] = {
                node: {"Pods": [p.pod for p in pods], "NumPDBViolations": count}
                for node, (pods, count) in victims.items()
            }
        answer = await self._ask(self._spec.preempt_verb, body)
        agreed: dict[str, tuple[list[PodInfo], int]] = {}
        for node, raw in (answer.get("nodenametometavictims") or {}).items():
            known = {p.uid: p for p in victims.get(node, ((), 0))[0]}
            entry = _folded(raw)
            uids = [_folded(item).get("uid") for item in entry.get("pods") or ()]
            if any(uid not in known for uid in uids):
                raise ExtenderError(
                    f"extender: {self.name} claims to preempt pod (UID: {uids}) on node: {node}, "
                    "but the pod is not found on that node"
                )
            agreed[node] = (
                [known[str(uid)] for uid in uids],
                int(entry.get("numpdbviolations", 0)),
            )
        return agreed

    async def bind(self, pod: PodInfo, node: str) -> None:
        """Let the extender bind."""
        body = {
            "PodName": pod.name,
            "PodNamespace": pod.namespace,
            "PodUID": pod.uid,
            "Node": node,
        }
        answer = await self._ask(self._spec.bind_verb, body)
        if answer.get("error"):
            raise ExtenderError(str(answer["error"]))

    def _arguments(self, pod: PodInfo, names: Sequence[str], table: NodeTable) -> dict[str, Any]:
        if self._spec.node_cache_capable:
            return {"Pod": pod.pod, "Nodes": None, "NodeNames": list(names)}
        found = [table.get(name) for name in names]
        items = [info.node for info in found if info is not None]
        return {"Pod": pod.pod, "Nodes": {"items": items}, "NodeNames": None}

    async def _ask(self, verb: str, body: object) -> dict[str, Any]:
        answer = await self._post(verb, body)
        if not isinstance(answer, dict):
            raise ExtenderError(f'extender "{self.name}" verb {verb}: want an object')
        return _folded(answer)

    async def _post(self, verb: str, body: object) -> Any:
        url = f"{self.name.rstrip('/')}/{verb}"
        headers = {"content-type": "application/json"}
        self._asking += 1
        self._idle.clear()
        try:
            async with asyncio.timeout(self._spec.timeout_seconds):
                answer = await self._transport.request(
                    "POST", f"{self._path}/{verb}", "", headers, orjson.dumps(body)
                )
        except (TransportError, TimeoutError) as problem:
            raise ExtenderError(f'Post "{url}": {str(problem) or "timed out"}') from problem
        finally:
            self._asking -= 1
            if not self._asking:
                self._idle.set()
        if answer.status != 200:
            raise ExtenderError(
                f"failed {verb} with extender at URL {self.name}, code {answer.status}"
            )
        try:
            return orjson.loads(answer.body)
        except orjson.JSONDecodeError as problem:
            raise ExtenderError(f'extender "{self.name}" verb {verb}: {problem}') from problem

    async def close(self) -> None:
        """Drop the connections once nobody waits for an answer any more."""
        await self._idle.wait()
        await self._transport.close()


def _transport(spec: ExtenderSpec) -> Transport:
    url = urlsplit(spec.url_prefix)
    secure = spec.enable_https or url.scheme == "https"
    port = url.port or (443 if secure else 80)
    name = str(spec.tls.get("serverName", ""))
    return HttpTransport(url.hostname or "", port, _tls(spec) if secure else None, server_name=name)


def _tls(spec: ExtenderSpec) -> ssl.SSLContext:
    """Return how to trust an extender, and whom to be; without a CA any certificate will do.

    The last follows kube-scheduler, where ``enableHTTPS`` alone means encryption only.
    """
    try:
        ca = _pem(spec.tls, "ca")
        config = ClientConfig(
            server=spec.url_prefix,
            ca=ca,
            insecure=bool(spec.tls.get("insecure")) or not ca,
            certificate=_pem(spec.tls, "cert"),
            key=_pem(spec.tls, "key"),
        )
        return tls_context(config)
    except (OSError, ValueError, binascii.Error) as problem:
        # ssl.SSLError, for texts that are no certificates, is an OSError.
        raise ConfigurationError(f"extender {spec.url_prefix}: tlsConfig: {problem}") from problem


def _pem(tls: Mapping[str, Any], part: str) -> bytes:
    """Return a PEM text given as data, which wins, or as a file."""
    if data := tls.get(f"{part}Data"):
        return base64.b64decode(data, validate=True)
    path = tls.get(f"{part}File")
    return Path(path).read_bytes() if path else b""


def _folded(raw: Any) -> dict[str, Any]:
    """Return an object with lower-case keys, as Go's decoder sees it."""
    if not isinstance(raw, dict):
        raise ExtenderError(f"want an object, got {type(raw).__name__}")
    return {str(key).lower(): value for key, value in raw.items()}


async def passing_extenders(
    extenders: Sequence[HttpExtender], pod: PodInfo, found: Found, table: NodeTable
) -> list[tuple[int, Status]]:
    """Reduce what was found to what every interested extender accepts, one after the other.

    Returns the rows they turned down, with what they said.
    """
    refusals: list[tuple[int, Status]] = []
    for extender in sorted(extenders, key=lambda item: item.ignorable):
        rows = found.feasible()
        if not len(rows):
            break
        if not extender.filters or not extender.interested(pod):
            continue
        names = [table.target(row).name for row in rows.tolist()]
        try:
            passed, failed, hopeless = await extender.filter(pod, names, table)
        except ExtenderError:
            if extender.ignorable:
                continue
            raise
        refusals += _refusals(table, failed, unschedulable)
        refusals += _refusals(table, hopeless, unresolvable)
        kept = [row for name in passed if (row := table.row(name)) is not None]
        found.rows, found.mask = np.array(sorted(kept), np.int64), None
    return refusals


def _refusals(
    table: NodeTable, messages: Mapping[str, str], refusal: Callable[[str], Status]
) -> list[tuple[int, Status]]:
    found = ((table.row(name), message) for name, message in messages.items())
    return [(row, refusal(message)) for row, message in found if row is not None]


async def extender_points(
    extenders: Sequence[HttpExtender], pod: PodInfo, rows: Rows, table: NodeTable
) -> dict[str, int]:
    """Return all extenders' points added up; one that fails gives none."""
    asked = [item for item in extenders if item.prioritizes and item.interested(pod)]
    if not asked or len(rows) <= 1:
        return {}
    names = [table.target(row).name for row in rows.tolist()]
    answers = await asyncio.gather(
        *(item.prioritize(pod, names, table) for item in asked), return_exceptions=True
    )
    total: dict[str, int] = {}
    for answer in answers:
        if isinstance(answer, ExtenderError):
            continue
        if isinstance(answer, BaseException):
            raise answer
        for name, points in answer.items():
            total[name] = total.get(name, 0) + points
    return total
