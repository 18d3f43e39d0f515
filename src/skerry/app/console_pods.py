"""Pods at edges in the console: what ``skerry logs`` shows and ``skerry exec`` runs.

The viewer asks as themselves, through the hub's own path for it; so the tunnel's rights decide, and
every look and every command is a session in the audit log.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from skerry.api.errors import BadRequest, ServiceUnavailable
from skerry.api.objects import Object
from skerry.app.console_questions import (
    Answering,
    Given,
    Viewer,
    optional_text,
    path_given,
    required_text,
)
from skerry.app.edge_pods import EdgePods
from skerry.app.explain_names import Unanswered
from skerry.app.pod_command import run_command
from skerry.kit.ids import IdSource
from skerry.logic.machinery.edges.pods import PodNameError, chosen_pod, pod_named
from skerry.runtime.transport import TransportError
from skerry.server.user import User
from skerry.web.desk import Program
from skerry.web.terminal import TabTerminal

MAX_LINES: Final = 500
MAX_BYTES: Final = 128 * 1024
MAX_PODS: Final = 500
_MAX_WORD: Final = 512
# A command travels in a request's query, of which a tunnel takes 32 KiB.
_MAX_COMMAND_WORDS, _MAX_COMMAND_LENGTH = 64, 4096


class ConsolePods:
    """Answers and runs as the viewer."""

    def __init__(self, viewer: Viewer, offered: Callable[[], bool], ids: IdSource) -> None:
        """*offered* tells whether the hub takes tunnels."""
        self._viewer = viewer
        self._offered = offered
        self._ids = ids

    def by_kind(self) -> dict[str, Answering]:
        """Return the questions by the names that tabs ask them by."""
        return {"log": self.log, "pods": self.pods}

    def programs(self) -> dict[str, Program]:
        """Return what runs in a terminal of a tab."""
        return {"exec": self.exec}

    async def log(self, user: User, given: Given) -> Mapping[str, Any]:
        """Return the last lines of a pod's log, as ``skerry logs EDGE POD --tail`` prints them."""
        query = [("tailLines", str(MAX_LINES)), ("limitBytes", str(MAX_BYTES))]
        query += _container(given)
        if given.get("previous") is True:
            query.append(("previous", "true"))
        word = _word(given, "pod")
        async with self._reached(user, given, "the log") as pods:
            pod = await pods.pod(word)
            found = await pods.beginning(pod, query, MAX_BYTES)
        return {"pod": pod, "text": found.decode(errors="replace")}

    async def pods(self, user: User, given: Given) -> Mapping[str, Any]:
        """Return the pods of a namespace at an edge, and which of them is meant by a word."""
        async with self._reached(user, given, "the list of pods") as pods:
            items = (await pods.all())["items"]
        chosen = _chosen(optional_text(given, "pod") or "", items)
        return {"pods": [_described(pod) for pod in items[:MAX_PODS]], "chosen": chosen}

    async def exec(self, user: User, given: Given, terminal: TabTerminal) -> int:
        """Run a command as ``skerry exec -it`` does; return its exit code."""
        query = [("command", each) for each in _command(given)]
        query += _container(given)
        query += [("stdin", "true"), ("stdout", "true"), ("tty", "true")]
        word = _word(given, "pod")
        async with self._reached(user, given, "the session") as pods:
            pod = await pods.pod(word)
            return await run_command(pods, pod, query, terminal, lambda: terminal.begin(pod))

    @asynccontextmanager
    async def _reached(self, user: User, given: Given, what: str) -> AsyncIterator[EdgePods]:
        """Yield the way to the pods that *given* is about, as *user*."""
        base = self._viewer.client(user).at("", path_given(given)).base
        edge, namespace = _word(given, "edge"), _word(given, "namespace")
        if not self._offered():
            raise ServiceUnavailable(
                "this hub takes no tunnels: start it with --tunnel and --audit-log, "
                "and the edge's syncer with --tunnel"
            )
        try:
            yield EdgePods(self._viewer.transport(user), edge, namespace, self._ids, base)
        except Unanswered as error:
            raise BadRequest(str(error)) from error
        except TransportError as error:
            raise ServiceUnavailable(f"{what} was cut off: {error}") from error


def _word(given: Given, name: str) -> str:
    found = required_text(given, name)
    if len(found) > _MAX_WORD:
        raise BadRequest(f"{name}: want at most {_MAX_WORD} characters")
    return found


def _container(given: Given) -> list[tuple[str, str]]:
    found = optional_text(given, "container")
    return [("container", found)] if found else []


def _command(given: Given) -> list[str]:
    found = given.get("command")
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise BadRequest("command: want a list of words")
    if not 0 < len(found) <= _MAX_COMMAND_WORDS or not found[0]:
        raise BadRequest(f"command: want 1 to {_MAX_COMMAND_WORDS} words")
    if sum(map(len, found)) > _MAX_COMMAND_LENGTH:
        raise BadRequest(f"command: want at most {_MAX_COMMAND_LENGTH} characters")
    return found


def _chosen(word: str, pods: Sequence[Object]) -> str:
    """Return the pod that is meant by a word such as ``deployment/web``; empty for none."""
    try:
        kind, name = pod_named(word)
        return name if kind == "Pod" else chosen_pod(kind, name, pods)
    except PodNameError:
        return ""


def _described(pod: Object) -> dict[str, Any]:
    """Return what is chosen from; an edge may say anything."""
    containers = (pod.get("spec") or {}).get("containers") or ()
    ports = [port.get("containerPort") for each in containers for port in each.get("ports") or ()]
    return {
        "name": str(pod["metadata"]["name"]),
        "containers": [str(each.get("name", "")) for each in containers],
        "ports": [port for port in ports if type(port) is int],
    }
