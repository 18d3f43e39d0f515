"""Questions of the console that the commands answer too: why not, what if, and then do it.

They are answered by the same functions as ``skerry explain`` and ``skerry whatif``, over a
transport straight into this hub that acts as the viewer. So nobody learns or does here what they
may not by ``kubectl``, and the engine limits, authorizes and audits each request of an answer.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson

from skerry.api.edge import PROJECTED, Mailbox
from skerry.api.errors import BadRequest, Conflict, Forbidden
from skerry.api.kcp.resources import SYNC_TARGETS, WORKSPACES
from skerry.api.kinds import GroupResource, ResourceInfo
from skerry.api.objects import Object
from skerry.app.explain import Question, explain
from skerry.app.explain_names import Unanswered, kind_of
from skerry.app.hub_reading import HubReader
from skerry.app.warm_reading import WarmReader
from skerry.app.what_if import Foresight, foresee
from skerry.logic.fleet.console.effects import edge_effects
from skerry.logic.fleet.explanation.changes import edited
from skerry.logic.fleet.translation.copies import copied
from skerry.logic.machinery.decoding.limits import DecodeError
from skerry.logic.machinery.decoding.yaml_text import decode_yaml
from skerry.runtime.client import Client, WriteOptions, cluster_of
from skerry.runtime.discovery import discover
from skerry.runtime.transport import UpgradingTransport
from skerry.server.user import User
from skerry.web.feed import Feed

Given = Mapping[str, Any]
Answering = Callable[[User, Given], Awaitable[Mapping[str, Any]]]

MAX_DOCUMENTS = 50
# Each is some 1.4 kB and a look into a mailbox; a page shows fifty.
MAX_PAIRS = 500
SECRETS = GroupResource("", "secrets")
_MANAGER = WriteOptions(field_manager="skerry-console")
_DIVIDER = re.compile(r"^---[ \t]*$", re.M)
_PATH = re.compile(r"[a-z0-9:-]{1,512}")
_AGENT = "skerry/console"
_DIGEST_LETTERS = 16


class Viewer:
    """Reads and writes as whoever looks; *transport_for* leads into the hub with their rights.

    *feed* is what the console keeps up anyway.
    """

    def __init__(self, transport_for: Callable[[User], UpgradingTransport], feed: Feed) -> None:
        self._transport_for = transport_for
        self._feed = feed

    def transport(self, user: User) -> UpgradingTransport:
        return self._transport_for(user)

    def client(self, user: User) -> Client:
        return Client(self._transport_for(user), user_agent=_AGENT)

    def reader(self, user: User, workspace: str) -> HubReader:
        return WarmReader(self.client(user), workspace, self._feed)


class ConsoleQuestions:
    """Answers as the viewer; *revision* returns how far the store is."""

    def __init__(self, viewer: Viewer, revision: Callable[[], Awaitable[int]]) -> None:
        self._viewer = viewer
        self._revision = revision

    def by_kind(self) -> dict[str, Answering]:
        """Return the questions by the names that tabs ask them by."""
        return {
            "explain": self.explain,
            "whatif": self.whatif,
            "apply": self.apply,
            "difference": self.difference,
            "children": self.children,
        }

    async def explain(self, user: User, given: Given) -> Mapping[str, Any]:
        """Answer as ``skerry explain placement NAME -o json`` does."""
        reader = self._viewer.reader(user, path_given(given))
        question = Question(
            required_text(given, "name"),
            optional_text(given, "edge"),
            optional_text(given, "object"),
            MAX_PAIRS,
        )
        try:
            return (await explain(reader, question)).as_json()
        except Unanswered as error:
            raise BadRequest(str(error)) from error

    async def whatif(self, user: User, given: Given) -> Mapping[str, Any]:
        """Answer as ``skerry whatif -o json`` does, with the revision that ``apply`` asks for."""
        return (await self._foreseen(user, given))[1]

    async def apply(self, user: User, given: Given) -> Mapping[str, Any]:
        """Write what was previewed, if it would still do what the preview said."""
        wanted = required_text(given, "revision").partition("-")[2]
        reader, answer, writes = await self._foreseen(user, given)
        if answer["revision"].partition("-")[2] != wanted:
            raise Conflict(
                "what this edit would do has changed since it was previewed: preview it again"
            )
        for info, live, obj in writes:
            if live is None:
                await reader.own.create(info.gvr, obj, options=_MANAGER)
            else:
                await reader.own.update(info.gvr, obj, options=_MANAGER)
        return {"applied": len(writes), "revision": await self._revision()}

    async def difference(self, user: User, given: Given) -> Mapping[str, Any]:
        """Return an object as its workspace wants it and as an edge's mailbox has it.

        Both without what belongs to where they are; null where the mailbox has none.
        """
        reader = self._viewer.reader(user, path_given(given))
        inventory, _, name = required_text(given, "edge").rpartition("/")
        at = self._viewer.client(user).at("", path_given({"ws": inventory}))
        try:
            types = await discover(reader.own)
            [subject, *_] = await reader.subjects(types, required_text(given, "object"))
            if subject.item.group_resource == SECRETS:
                raise BadRequest("object: what Secrets hold is not shown")
            target = await at.get(SYNC_TARGETS, name)
            mailbox = Mailbox(cluster_of(target), target["metadata"]["uid"]).workspace
            found = await reader.mailboxes({mailbox})
            copies, unreadable = await reader.copies([*found.values()], types, {subject.item})
        except Unanswered as error:
            raise BadRequest(str(error)) from error
        if mailbox in unreadable:
            raise Forbidden(f"the mailbox of {name} cannot be read: {unreadable[mailbox]}")
        copy = copies.get((mailbox, subject.item))
        kind = subject.item.group_resource
        return {
            "wanted": copied(kind, subject.object),
            "delivered": None if copy is None else _content(copied(kind, copy)),
        }

    async def children(self, user: User, given: Given) -> Mapping[str, Any]:
        """Return the workspaces below one, as far as the viewer may list them."""
        path = path_given(given)
        found = (await self._viewer.client(user).at("", path).list(WORKSPACES)).items
        return {"ws": path, "children": [_workspace(path, each) for each in found]}

    async def _foreseen(
        self, user: User, given: Given
    ) -> tuple[HubReader, dict[str, Any], list[tuple[ResourceInfo, Object | None, Object]]]:
        """Return what the manifest would do, and the writes that would do it."""
        reader = self._viewer.reader(user, path_given(given))
        documents = documents_of(required_text(given, "manifest"))
        try:
            foresight = await foresee(reader, documents)
            answer = foresight.as_json()
            edges = await _edges(reader, foresight)
            types = await discover(reader.own)
            writes = []
            for document in documents:
                info = kind_of(types, document)
                live = await reader.live(info, document)
                writes.append((info, live, edited(live, document)))
        except Unanswered as error:
            raise BadRequest(str(error)) from error
        versions = [live and live["metadata"]["resourceVersion"] for _, live, _ in writes]
        seen = orjson.dumps([answer, versions], option=orjson.OPT_SORT_KEYS)
        digest = hashlib.sha256(seen).hexdigest()[:_DIGEST_LETTERS]
        revision = f"{await self._revision()}-{digest}"
        return reader, {**answer, "edges": edges, "revision": revision}, writes


async def _edges(reader: HubReader, foresight: Foresight) -> list[dict[str, str]]:
    """Return the edges that an edit reaches, and how, as far as slices may be read."""
    standings = await reader.standings()
    found = edge_effects(foresight.changes, lambda ref: standings(ref).destinations)
    return [
        {"workspace": foresight.path(cluster), "name": name, "effect": found[cluster, name]}
        for cluster, name in sorted(found)
    ]


def _content(copy: Object) -> Object:
    """Return a copy without the label that says it is one."""
    metadata = dict(copy["metadata"])
    labels = {key: each for key, each in metadata.pop("labels", {}).items() if key != PROJECTED}
    return {**copy, "metadata": {**metadata, **({"labels": labels} if labels else {})}}


def documents_of(text: str) -> list[Object]:
    """Return the objects of a manifest; a List stands for its items."""
    found: list[Any] = []
    for part in _DIVIDER.split(text):
        try:
            document = decode_yaml(part.encode())
        except DecodeError as error:
            raise BadRequest(f"manifest: {error}") from error
        found += _items(document)
    if not 1 <= len(found) <= MAX_DOCUMENTS:
        raise BadRequest(f"manifest: found {len(found)} objects, want 1 to {MAX_DOCUMENTS}")
    for each in found:
        metadata = each.get("metadata") if isinstance(each, dict) else None
        if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
            raise BadRequest("manifest: want objects with apiVersion, kind and metadata.name")
    return found


def _items(document: Any) -> list[Any]:
    if document is None:
        return []
    if isinstance(document, dict) and str(document.get("kind", "")).endswith("List"):
        items = document.get("items")
        return items if isinstance(items, list) else [items]
    return [document]


def _workspace(parent: str, workspace: Object) -> dict[str, str]:
    spec, name = workspace.get("spec") or {}, workspace["metadata"]["name"]
    return {
        "path": f"{parent}:{name}",
        "name": name,
        "type": str((spec.get("type") or {}).get("name", "")),
        "phase": str((workspace.get("status") or {}).get("phase", "")),
    }


def path_given(given: Given) -> str:
    """Return the path of the workspace that is meant."""
    found = required_text(given, "ws")
    if not _PATH.fullmatch(found):
        raise BadRequest(f"ws: found {found[:64]!r}, want the path of a workspace, as in root:shop")
    return found


def required_text(given: Given, name: str) -> str:
    """Return a member that must be there."""
    found = optional_text(given, name)
    if not found:
        raise BadRequest(f"{name}: want a text")
    return found


def optional_text(given: Given, name: str) -> str:
    """Return a member that may be left out."""
    found = given.get(name, "")
    if not isinstance(found, str):
        raise BadRequest(f"{name}: found {type(found).__name__}, want a text")
    return found
