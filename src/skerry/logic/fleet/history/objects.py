"""Decisions about single objects of a placement: withheld, released, sent in another form.

They are the translator's, and about what is sent; who it is sent to is the scheduler's, in records
of its own chain. Folding passes over them: they change no destination.

Withheld and Released are the difference between two states, and the earlier one can be read back
from the records themselves (``withheld_in``): a process that starts anew repeats nothing that was
recorded, and misses nothing that happened while nobody ran.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from skerry.api.objects import Object
from skerry.api.refs import ClusterName, ObjectRef
from skerry.logic.fleet.history.record import Cause, Decision, Item, Reason

_RELEASED = "Released"


class Sent(NamedTuple):
    """What is sent of an object, by digest: before, and now; empty where nothing is."""

    start: str
    to: str
    resource_version: str = ""
    manager: str = ""


class Because(NamedTuple):
    """Why an object is withheld, and at how many destinations."""

    reason: str
    message: str = ""
    destinations: int = 0


# By group, resource, namespace and name.
Withheld = Mapping[tuple[str, str, str, str], Because]


def key_of(item: ObjectRef) -> tuple[str, str, str, str]:
    """Return what an object is known by in records: they are about one workspace."""
    return item.group, item.resource, item.namespace, item.name


def object_decisions(
    cluster: ClusterName,
    before: Withheld,
    now: Withheld,
    changed: Mapping[ObjectRef, Sent],
    destinations: int,
) -> Iterator[Decision]:
    """Return what has become of objects, in a fixed order.

    The same difference makes the same records then: whoever repeats it after a crash finds them.
    """
    for key in sorted(now.keys() - before.keys()):
        why = now[key]
        reason = Reason(why.reason, why.message)
        yield Decision("Withheld", (), reason, item=Item(*key), count=why.destinations)
    for key in sorted(before.keys() - now.keys()):
        why = before[key]
        reason = Reason(_RELEASED, f"{why.reason} no more")
        yield Decision("Released", (), reason, item=Item(*key), count=why.destinations)
    for item, sent in sorted(changed.items()):
        if sent.start != sent.to:
            yield _revised(cluster, item, sent, destinations)


def _revised(cluster: ClusterName, item: ObjectRef, sent: Sent, destinations: int) -> Decision:
    code, text = "ContentChanged", "changed"
    if not sent.start:
        code, text = "ObjectAdded", "added"
    elif not sent.to:
        code, text = "ObjectRemoved", "removed"
    cause = Cause(
        item.resource,
        item.name,
        cluster,
        item.namespace,
        sent.resource_version,
        text,
        manager=sent.manager,
    )
    return Decision(
        "Revised",
        (),
        Reason(code, text),
        (cause,),
        1,
        item=Item(*key_of(item), sent.start, sent.to),
        everybody=destinations,
    )


def withheld_in(records: Iterable[Object]) -> dict[tuple[str, str, str, str], Because]:
    """Return what is withheld by records, in their order."""
    found: dict[tuple[str, str, str, str], Because] = {}
    for record in records:
        item = record.get("object")
        if not item or record.get("change") not in ("Withheld", _RELEASED):
            continue
        fields = (item.get(name, "") for name in ("group", "resource", "namespace", "name"))
        group, resource, namespace, name = fields
        key = group, resource, namespace, name
        if record["change"] == "Withheld":
            reason = record.get("reason") or {}
            count = (record.get("destinations") or {}).get("count", 0)
            found[key] = Because(reason.get("code", ""), reason.get("text", ""), count)
        else:
            found.pop(key, None)
    return found
