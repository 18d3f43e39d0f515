"""Logs of pods at edges in the console: what ``skerry logs`` shows, of the last lines.

The viewer asks as themselves, through the hub's own path for it; so the tunnel's rights decide, and
every look is a session in the audit log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from skerry.api.errors import BadRequest, ServiceUnavailable
from skerry.app.console_questions import (
    Answering,
    Given,
    Viewer,
    optional_text,
    path_given,
    required_text,
)
from skerry.app.edge_pods import PodLogs
from skerry.app.explain_names import Unanswered
from skerry.runtime.transport import TransportError
from skerry.server.user import User

MAX_LINES = 500
MAX_BYTES = 128 * 1024
_MAX_WORD = 512


class ConsoleLogs:
    """Answers as the viewer."""

    def __init__(self, viewer: Viewer, offered: Callable[[], bool]) -> None:
        """*offered* tells whether the hub takes tunnels."""
        self._viewer = viewer
        self._offered = offered

    def by_kind(self) -> dict[str, Answering]:
        """Return the questions by the names that tabs ask them by."""
        return {"log": self.log}

    async def log(self, user: User, given: Given) -> Mapping[str, Any]:
        """Return the last lines of a pod's log, as ``skerry logs EDGE POD --tail`` prints them."""
        client = self._viewer.client(user).at("", path_given(given))
        edge, namespace, word = (_word(given, name) for name in ("edge", "namespace", "pod"))
        if not self._offered():
            raise ServiceUnavailable(
                "this hub takes no tunnels: start it with --tunnel and --audit-log, "
                "and the edge's syncer with --tunnel"
            )
        pods = PodLogs(client.transport, edge, namespace, client.base)
        query = [("tailLines", str(MAX_LINES)), ("limitBytes", str(MAX_BYTES))]
        if container := optional_text(given, "container"):
            query.append(("container", container))
        if given.get("previous") is True:
            query.append(("previous", "true"))
        try:
            pod = await pods.pod(word)
            found = await pods.beginning(pod, query, MAX_BYTES)
        except Unanswered as error:
            raise BadRequest(str(error)) from error
        except TransportError as error:
            raise ServiceUnavailable(f"the log was cut off: {error}") from error
        return {"pod": pod, "text": found.decode(errors="replace")}


def _word(given: Given, name: str) -> str:
    found = required_text(given, name)
    if len(found) > _MAX_WORD:
        raise BadRequest(f"{name}: want at most {_MAX_WORD} characters")
    return found
