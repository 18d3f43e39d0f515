"""PartitionSets: the Partitions that one divides its Shards into.

A set has a Partition for each combination of values that the Shards it selects have for its
dimensions. The labels its selector asks for are dimensions too; a Shard that lacks one of them is
in no Partition, and without any dimension there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from skerry.api.objects import Object
from skerry.logic.machinery.conditions import set_conditions, unmet
from skerry.logic.machinery.names import dns1123_subdomain
from skerry.logic.machinery.selectors import Selector, SelectorError

VALID, READY = "PartitionSetValid", "PartitionsReady"
_NOT_READY = "ErrorGeneratingPartitions"


class Division(NamedTuple):
    """What a set should say, which of its Partitions go, and the selectors of those to come."""

    status: Object
    stale: tuple[str, ...] = ()
    missing: tuple[Object, ...] = ()


def division(
    obj: Object, owned: Iterable[Object], shards: Iterable[Mapping[str, str]], now: str
) -> Division:
    """Return how *obj*, a set that has *owned* already, divides Shards of these labels."""
    spec, old = obj.get("spec") or {}, obj.get("status") or {}
    try:
        wanted = _selectors(spec, shards)
    except SelectorError as error:
        invalid = unmet(VALID, "InvalidSelector", str(error))
        return Division(_with_conditions(old, [invalid, unmet(READY, _NOT_READY, "")], now))
    kept: list[Object] = []
    stale: list[str] = []
    for partition in owned:
        selector = (partition.get("spec") or {}).get("selector") or {}
        if selector in wanted and selector not in kept:
            kept.append(selector)
        else:
            stale.append(partition["metadata"]["name"])
    missing = [selector for selector in wanted if selector not in kept]
    named = [each for each in missing if not dns1123_subdomain(f"{base_name(obj, each)}x")]
    ready = {"type": READY, "status": "True"}
    if len(named) < len(missing):
        # A label may have letters that a name may not.
        ready = unmet(READY, _NOT_READY, "partition could not get created")
    status = _with_conditions(old, [{"type": VALID, "status": "True"}, ready], now)
    return Division({**status, "count": len(wanted)}, tuple(stale), tuple(named))


def base_name(obj: Object, selector: Object) -> str:
    """Return what the names of Partitions with *selector* begin with: set and values."""
    dimensions = sorted((obj.get("spec") or {}).get("dimensions") or ())
    values = [selector["matchLabels"][dimension].lower() for dimension in dimensions]
    return "-".join([obj["metadata"]["name"], *values, ""])


def _selectors(spec: Mapping[str, Any], shards: Iterable[Mapping[str, str]]) -> list[Object]:
    asked = spec.get("shardSelector")
    # As in kcp, one that is absent selects everything here, and nothing in a Partition.
    selects = Selector.from_label_selector(asked or {})
    labels = sorted({*(spec.get("dimensions") or ()), *((asked or {}).get("matchLabels") or ())})
    expressions: Sequence[Object] = (asked or {}).get("matchExpressions") or ()
    more = {"matchExpressions": list(expressions)} if expressions else {}
    found: list[Object] = []
    for shard in shards:
        if labels and selects.matches(shard) and all(label in shard for label in labels):
            selector = {"matchLabels": {label: shard[label] for label in labels}, **more}
            if selector not in found:
                found.append(selector)
    return found


def _with_conditions(old: Object, conditions: list[Object], now: str) -> Object:
    return {**old, "conditions": set_conditions(old.get("conditions") or (), conditions, now)}
