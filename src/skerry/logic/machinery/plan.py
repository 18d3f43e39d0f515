"""What a controller has decided to do: data, not deeds.

A ``decide`` function returns a ``Plan``; ``runtime.execute`` carries it out. Because a plan is
plain data it can be compared in tests, shown by a dry run and explained to a person: each action
says in ``reason`` why it is there, in one CamelCase word as Kubernetes' own reasons are.

Safety is stated in the plan too. An action carries its preconditions (``uid``,
``resource_version``) and whether a conflict may be retried; the executor never invents either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object

Propagation = Literal["", "Background", "Foreground", "Orphan"]
PatchKind = Literal["json", "merge", "strategic"]
EventType = Literal["Normal", "Warning"]


class Terminal(Exception):
    """Trying again cannot help: the object itself must change first. Never retried."""


class Target(NamedTuple):
    """The object an action is about; cluster is empty on a plain server."""

    gvr: GroupVersionResource
    name: str
    namespace: str = ""
    cluster: str = ""

    def __str__(self) -> str:
        local = f"{self.namespace}/{self.name}" if self.namespace else self.name
        place = f"{self.cluster}|{local}" if self.cluster else local
        return f"{self.gvr.group_resource} {place}"


@dataclass(frozen=True, slots=True)
class Create:
    """Make an object. One that is already there is as good, unless *exclusive*.

    *refusal_is_fine*: what was meant can do without it, where a server does not take it.
    """

    target: Target
    object: Object
    reason: str
    exclusive: bool = False
    subresource: str = ""
    refusal_is_fine: bool = False


@dataclass(frozen=True, slots=True)
class Update:
    """Replace an object (or its *subresource*) as it was read: a change since is a Conflict.

    With *overwrite* the content counts whatever happened since, as long as it is the same object
    (``metadata.uid``): the executor takes the newest resourceVersion and tries again.
    *refusal_is_fine*: the content is somebody else's word, and a server that does not take it (it
    is forbidden, invalid or too large) is right. To write the same once more would not help.
    """

    target: Target
    object: Object
    reason: str
    subresource: str = ""
    overwrite: bool = False
    refusal_is_fine: bool = False


@dataclass(frozen=True, slots=True)
class Patch:
    """Change part of an object.

    A patch that states no ``resourceVersion`` means its change whatever the rest is, so the
    executor may repeat it after a Conflict; *uid* makes sure it is still the same object.
    *absent_is_fine*: there is nothing to change when the object has gone. *quiet* needs no answer:
    where the server can, it sends none, and takes many such patches at once.
    """

    target: Target
    patch: Any
    reason: str
    kind: PatchKind = "merge"
    subresource: str = ""
    retry_on_conflict: bool = False
    absent_is_fine: bool = False
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Apply:
    """Server-side apply: these fields are ours and have these values. *quiet*: not worth a line."""

    target: Target
    object: Object
    reason: str
    force: bool = True
    subresource: str = ""
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Delete:
    """Ask for deletion of exactly the object that was seen. One that has gone is as good.

    A *uid* or *resource_version* that no longer fits leaves the object alone: the decision was
    about another one. That is an outcome (``kept``), not an error.
    """

    target: Target
    reason: str
    uid: str = ""
    resource_version: str = ""
    propagation: Propagation = ""
    grace_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class DeleteCollection:
    """Ask for deletion of everything selected in one namespace (or one cluster)."""

    gvr: GroupVersionResource
    reason: str
    namespace: str = ""
    cluster: str = ""
    label_selector: str = ""
    propagation: Propagation = ""


@dataclass(frozen=True, slots=True)
class Record:
    """Write entries of the controller's own journal about one object; None forgets an entry.

    They are on disk before the next action begins, so that whoever dies in between knows later
    what it may have done.
    """

    target: Target
    entries: Mapping[str, object]
    reason: str


Action = Create | Update | Patch | Apply | Delete | DeleteCollection | Record


@dataclass(frozen=True, slots=True)
class Announcement:
    """An Event to be recorded about an object once the plan has been carried out."""

    about: Object
    type: EventType
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Actions in order; an error ends the plan. *unordered* ones may run side by side.

    *requeue_after_seconds* asks for another look at the same key after that time, for what no event
    will announce (an expiry).
    """

    actions: Sequence[Action] = ()
    announcements: Sequence[Announcement] = ()
    requeue_after_seconds: float | None = None
    unordered: bool = False

    def __iter__(self) -> Iterator[Action]:
        return iter(self.actions)

    def __len__(self) -> int:
        return len(self.actions)

    def __bool__(self) -> bool:
        """Tell whether there is anything to do."""
        return bool(self.actions)


NOTHING = Plan()


def target_text(action: Action) -> str:
    """Return what an action is about, for people."""
    if not isinstance(action, DeleteCollection):
        return str(action.target)
    local = f"{action.namespace}/*" if action.namespace else "*"
    place = f"{action.cluster}|{local}" if action.cluster else local
    return f"{action.gvr.group_resource} {place}"
