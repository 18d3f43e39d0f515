"""Why an object that stands at the edge is not doing well, in one line.

A status says how many replicas are missing; why, only the edge's pods and Events know. The worst
of them is reported, as ``Reason: message`` in the edge's own words. From worst to mildest:

1. the image cannot be had (nothing starts until somebody changes something);
2. the container cannot be made: a ConfigMap, Secret or volume is missing, the node refuses it;
3. it ran out of memory; 4. it ends and is started again;
5. no node takes the pod; 6. a probe fails;
7. the pod was evicted or lost, and no other stands in for it yet;
8. pods or volumes cannot be created: quota, admission. Only where no pod is under way: the Events
   that say so stay for an hour.

It must not change when nothing does, or every back-off of every pod would be a write at the hub:
back-off times, counts and names of pods are left out, equals are chosen in a fixed order, and what
is reported already stays while it is as true as anything else.

It is made of states, Events and the last line of what a container that failed has written: no
variables, no earlier lines. Control characters become spaces; the whole is cut to
``MAX_CAUSE_BYTES``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple

from skerry.api.edge import MAX_CAUSE_BYTES, NOT_ENFORCED
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object, Raw, section_of_any
from skerry.kit.text import one_line

# Of a log no more than this is read for its last line, and kept of a message at the edge.
MAX_LINE_BYTES: Final = 1024

_STARTING = frozenset(("", "ContainerCreating", "PodInitializing"))
_PULLING = frozenset(("ErrImagePull", "ImagePullBackOff"))
_IMAGE = _PULLING | {"InvalidImageName", "ErrImageNeverPull", "ImageInspectError"}
_CRASH_LOOP = "CrashLoopBackOff"
_OUT_OF_MEMORY = "OOMKilled"
_PROBE = "Unhealthy"
# Events of an owner whose pods, or of a claim whose volume, cannot be made.
_NOT_CREATED = frozenset(("FailedCreate", "ProvisioningFailed", "FailedBinding"))
# Events of a pod that cannot begin.
_NOT_STARTED = frozenset(("FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox"))
# How a container ends that a probe has stopped: by SIGKILL or SIGTERM.
_STOPPED = (137, 143)
# What kubelet says while it waits to pull again; the trouble itself was said before.
_BACKING_OFF = "Back-off pulling image"
# Newer ones repeat the trouble behind these words.
_PULL_ERROR = "ErrImagePull: "
# Each try to create a pod has another name.
_POD_NAME: Final = re.compile(r'pods? "[^"]{1,253}"')


class _Rank(IntEnum):
    IMAGE = 1
    CONTAINER = 2
    MEMORY = 3
    CRASH = 4
    UNSCHEDULABLE = 5
    PROBE = 6
    LOST = 7
    NOT_CREATED = 8


class Cause(NamedTuple):
    """One word for programs, a line for people."""

    reason: str
    message: str = ""

    @property
    def text(self) -> str:
        """As the mark on a copy has it: bounded, in one line."""
        words = (one_line(part) for part in (self.reason, self.message))
        return _cut(": ".join(part for part in words if part), MAX_CAUSE_BYTES)


class LogLine(NamedTuple):
    """The last line of one run of a container. *run* tells one run from the next."""

    namespace: str
    pod: str
    container: str
    previous: bool
    run: str


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known at the edge around one object that is not well."""

    # Rows of ``lean_pod``: its pods, or itself.
    pods: Sequence[Raw] = ()
    # Rows of ``lean_event`` by the UID they are about: the object, its ReplicaSets, its pods.
    warnings: Mapping[str, Sequence[Raw]] = field(default_factory=dict)
    # Who creates its pods: itself, or its ReplicaSets.
    creators: Sequence[str] = ()
    # Last lines that were read; empty where there is none.
    lines: Mapping[LogLine, str] = field(default_factory=dict)
    # A verdict of the edge's own that says that it is over, but not why: a Job's failure.
    verdict: str = ""
    # What the mailbox says already.
    reported: str = ""


class Finding(NamedTuple):
    """The cause, and the log line that would tell more of it."""

    cause: Cause | None = None
    ask: LogLine | None = None


class _Candidate(NamedTuple):
    rank: _Rank
    cause: Cause
    pod: str = ""
    ask: LogLine | None = None


def find(seen: Seen) -> Finding:
    """Return the worst cause there is; None when nothing at the edge tells one."""
    found = [candidate for pod in seen.pods for candidate in _of_pod(pod, seen)]
    if any(section_of_any(pod, "status").get("phase") != "Failed" for pod in seen.pods):
        # Pods that were evicted stay around for long after others have taken their place.
        found = [candidate for candidate in found if candidate.rank != _Rank.LOST]
    if not seen.pods:
        found = list(_of_creation(seen))
    if not found:
        return Finding()
    worst = min(candidate.rank for candidate in found)
    equals = sorted((c for c in found if c.rank == worst), key=lambda c: (c.cause, c.pod))
    chosen = next((c for c in equals if _reported(c.cause, seen) == seen.reported), equals[0])
    return Finding(_in_context(chosen.cause, seen), chosen.ask)


def _reported(cause: Cause, seen: Seen) -> str:
    return _in_context(cause, seen).text


def _in_context(cause: Cause, seen: Seen) -> Cause:
    """Return *cause* below the verdict that it explains, or as it was reported in more detail."""
    if seen.verdict:
        return Cause(seen.verdict, cause.message or cause.reason)
    if cause.reason == "ImagePullBackOff" and cause.message.startswith(_BACKING_OFF):
        image = cause.message.removeprefix(_BACKING_OFF).strip(' "')
        reason, _, before = seen.reported.partition(": ")
        if reason == cause.reason and ": " not in cause.message and image in before:
            return Cause(reason, before)
    return cause


def inert(live: Raw | None) -> str:
    """Return what a row of ``present`` says has no effect at its edge, as a cause."""
    # Asked of every object that is written back, and nearly none has notes.
    notes = live["metadata"].get("annotations") if live else None
    message = _text(notes, NOT_ENFORCED) if notes else ""
    return Cause("NotEnforced", message).text if message else ""


# -- pods ------------------------------------------------------------------------------------


def _of_pod(pod: Raw, seen: Seen) -> Iterator[_Candidate]:
    metadata, status = pod["metadata"], section_of_any(pod, "status")
    phase, name = status.get("phase"), metadata["name"]
    if metadata.get("deletionTimestamp") or phase == "Succeeded":
        return
    if is_lost(pod):
        yield _Candidate(_Rank.LOST, Cause(str(status["reason"]), _text(status, "message")), name)
        return
    scheduled = _condition(status, "PodScheduled")
    if scheduled.get("status") == "False":
        cause = Cause(_text(scheduled, "reason") or "Unschedulable", _text(scheduled, "message"))
        yield _Candidate(_Rank.UNSCHEDULABLE, cause, name)
        return
    warnings = seen.warnings.get(str(metadata.get("uid", "")), ())
    for container in _containers(status):
        found = _of_container(pod, container, warnings, seen)
        if found is not None:
            yield found


def _of_container(
    pod: Raw, container: Raw, warnings: Sequence[Raw], seen: Seen
) -> _Candidate | None:
    name, state = pod["metadata"]["name"], section_of_any(container, "state")
    if "waiting" in state:
        waiting = section_of_any(state, "waiting")
        reason = _text(waiting, "reason")
        if reason == _CRASH_LOOP:
            return _ended(pod, container, warnings, seen)
        if reason in _STARTING:
            reason, message = _newest(warnings, _NOT_STARTED)
            return _Candidate(_Rank.CONTAINER, Cause(reason, message), name) if reason else None
        rank = _Rank.IMAGE if reason in _IMAGE else _Rank.CONTAINER
        message = _text(waiting, "message")
        if reason in _PULLING:
            reason, message = "ImagePullBackOff", message.rpartition(_PULL_ERROR)[2]
        return _Candidate(rank, Cause(reason, _named(pod, container, message)), name)
    if "terminated" in state:
        return _ended(pod, container, warnings, seen)
    if "running" not in state or container.get("ready"):
        return None
    _, message = _newest(warnings, (_PROBE,))
    if message:
        return _Candidate(_Rank.PROBE, Cause(_PROBE, message), name)
    # Started anew and not ready yet: whatever ended it before still is the trouble.
    return _ended(pod, container, warnings, seen)


def _ended(pod: Raw, container: Raw, warnings: Sequence[Raw], seen: Seen) -> _Candidate | None:
    """Tell how a container ended, now or the last time."""
    now = section_of_any(section_of_any(container, "state"), "terminated")
    end = now or section_of_any(section_of_any(container, "lastState"), "terminated")
    code = end.get("exitCode")
    if not isinstance(code, int) or code == 0:
        return None
    name, reason = pod["metadata"]["name"], _text(end, "reason")
    if reason == _OUT_OF_MEMORY:
        cause = Cause(reason, _named(pod, container, f"exit code {code}"))
        return _Candidate(_Rank.MEMORY, cause, name)
    reason = _CRASH_LOOP if container.get("restartCount") or not now else reason or "Error"
    probe = _newest(warnings, (_PROBE,))[1] if code in _STOPPED else ""
    ask = LogLine(
        pod["metadata"].get("namespace", ""),
        name,
        _text(container, "name"),
        not now,
        _text(end, "containerID") or _text(end, "finishedAt"),
    )
    words = _text(end, "message") or probe or seen.lines.get(ask, "")
    line = last_line(words)
    message = _named(pod, container, f"exit code {code}: {line}" if line else f"exit code {code}")
    if words or ask in seen.lines:
        return _Candidate(_Rank.CRASH, Cause(reason, message), name)
    # Until the last line of this run is known, that of the run before will do.
    before = seen.reported.partition(": ")[2]
    if before.startswith(f"{message}: "):
        message = before
    return _Candidate(_Rank.CRASH, Cause(reason, message), name, ask)


def _named(pod: Raw, container: Raw, message: str) -> str:
    """Return *message* with the container's name, where the pod has several."""
    several = len(list(_containers(section_of_any(pod, "status")))) > 1
    return f"container {_text(container, 'name')}: {message}" if several else message


def _of_creation(seen: Seen) -> Iterator[_Candidate]:
    for uid in seen.creators:
        reason, message = _newest(seen.warnings.get(uid, ()), _NOT_CREATED)
        if reason:
            kind = _POD_NAME.sub("pods", message)
            yield _Candidate(_Rank.NOT_CREATED, Cause(reason, kind))


def _newest(warnings: Sequence[Raw], reasons: Iterable[str]) -> tuple[str, str]:
    """Return reason and message of the latest of these Events; empty when there is none."""
    wanted = set(reasons)
    found = [each for each in warnings if each.get("reason") in wanted]
    if not found:
        return "", ""
    latest = max(found, key=lambda each: (str(each.get("time", "")), str(each["message"])))
    return str(latest["reason"]), str(latest["message"])


# -- what is kept of pods and Events -----------------------------------------------------------

# The kinds whose state is that of pods, and claims, whose Events tell what they wait for.
WITH_CAUSES: Final = frozenset(
    (
        GroupResource("apps", "deployments"),
        GroupResource("apps", "replicasets"),
        GroupResource("apps", "statefulsets"),
        GroupResource("apps", "daemonsets"),
        GroupResource("batch", "jobs"),
        GroupResource("", "replicationcontrollers"),
        GroupResource("", "pods"),
        GroupResource("", "persistentvolumeclaims"),
    )
)
_IDENTITY = ("name", "namespace", "uid", "resourceVersion", "deletionTimestamp", "ownerReferences")
_OF_CONTAINER = ("name", "ready", "restartCount", "state", "lastState")


def lean_pod(pod: Object) -> Object:
    """Return the little of a pod that tells how it fares; of its spec, nothing."""
    status = section_of_any(pod, "status")
    kept: Object = {
        name: str(status[name])[:MAX_LINE_BYTES]
        for name in ("phase", "reason", "message")
        if status.get(name)
    }
    scheduled = _condition(status, "PodScheduled")
    if scheduled.get("status") == "False":
        kept["conditions"] = [dict(scheduled)]
    for member in ("initContainerStatuses", "containerStatuses"):
        found = status.get(member)
        if isinstance(found, list):
            kept[member] = [
                {name: each[name] for name in _OF_CONTAINER if name in each}
                for each in found
                if isinstance(each, Mapping)
            ]
    return {"metadata": _identity(pod), "status": kept}


def lean_event(event: Object) -> Object:
    """Return what an Event says, of whom, and when it was last so."""
    involved = section_of_any(event, "involvedObject") or section_of_any(event, "regarding")
    series = section_of_any(event, "series")
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return {
        "metadata": _identity(event),
        "about": str(involved.get("uid", "")),
        "reason": str(event.get("reason", "")),
        "message": str(event.get("message") or event.get("note") or "")[:MAX_LINE_BYTES],
        "time": next((str(time) for time in times if time), ""),
    }


def lean_owned(obj: Object) -> Object:
    """Return who an object is and whose, which is all that a ReplicaSet is asked."""
    return {"metadata": _identity(obj)}


def is_fine(pod: Raw) -> bool:
    """Tell whether a row of ``lean_pod`` has nothing to tell: it is over, or all of it is ready."""
    status = section_of_any(pod, "status")
    if pod["metadata"].get("deletionTimestamp") or status.get("phase") == "Succeeded":
        return True
    found = status.get("containerStatuses")
    return status.get("phase") == "Running" and all(
        isinstance(each, Mapping) and each.get("ready")
        for each in (found if isinstance(found, list) else ())
    )


def is_lost(pod: Raw) -> bool:
    """Tell whether a row of ``lean_pod`` failed as a whole: evicted, or with its node."""
    status = section_of_any(pod, "status")
    return status.get("phase") == "Failed" and bool(status.get("reason"))


def _identity(obj: Raw) -> Object:
    metadata = obj["metadata"]
    return {name: metadata[name] for name in _IDENTITY if name in metadata}


# -- text ------------------------------------------------------------------------------------


def last_line(text: str) -> str:
    """Return the last line of *text* that says something."""
    lines = (one_line(line) for line in reversed(text.splitlines()))
    return next((line for line in lines if line), "")


def _cut(text: str, limit: int) -> str:
    """Return as much of *text* as *limit* bytes of UTF-8 have room for."""
    return text.encode(errors="replace")[:limit].decode(errors="ignore")


# -- reading what edges say ------------------------------------------------------------------


def _containers(status: Raw) -> Iterator[Raw]:
    for member in ("initContainerStatuses", "containerStatuses"):
        found = status.get(member)
        yield from (c for c in (found if isinstance(found, list) else ()) if isinstance(c, Mapping))


def _condition(status: Raw, kind: str) -> Raw:
    found = status.get("conditions")
    for each in found if isinstance(found, list) else ():
        if isinstance(each, Mapping) and each.get("type") == kind:
            return each
    return {}


def _text(section: Raw, name: str) -> str:
    value = section.get(name)
    return value if isinstance(value, str) else ""
