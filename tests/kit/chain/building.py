"""Objects for the tests of placement, and strategies that draw them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from skerry.api.objects import Object

KEYS = ("env", "region", "tier")
VALUES = ("a", "b", "c")


def meta(cluster: str, name: str, labels: dict[str, str] | None = None, **more: Any) -> Object:
    annotations = {"kcp.io/cluster": cluster, **more.pop("annotations", {})}
    return {"name": name, "labels": labels or {}, "annotations": annotations, **more}


def placement(name: str, *selectors: Object, cluster: str = "wmw", **spec: Any) -> Object:
    return {
        "apiVersion": "edge.kcp.io/v1alpha1",
        "kind": "EdgePlacement",
        "metadata": meta(cluster, name, uid=f"uid-{name}", generation=1),
        "spec": {"locationSelectors": list(selectors), **spec},
    }


def location(
    name: str,
    labels: dict[str, str] | None = None,
    instances: Object | None = None,
    cluster: str = "imw",
    taints: str = "",
) -> Object:
    spec: Object = {"resource": {"resource": "synctargets", "version": "v1alpha1"}}
    if instances is not None:
        spec["instanceSelector"] = instances
    annotations = {"edge.kcp.io/taints": taints} if taints else {}
    return {"metadata": meta(cluster, name, labels, annotations=annotations), "spec": spec}


def sync_target(
    name: str,
    labels: dict[str, str] | None = None,
    cluster: str = "imw",
    *,
    uid: str = "",
    ready: bool = False,
    unschedulable: bool = False,
) -> Object:
    conditions = [{"type": "Ready", "status": "True"}] if ready else []
    return {
        "metadata": meta(cluster, name, labels, uid=uid or f"uid-{name}"),
        "spec": {"unschedulable": unschedulable},
        "status": {"conditions": conditions},
    }


def grant(
    name: str,
    cluster: str = "imw",
    *,
    mode: str = "Enforce",
    paths: Sequence[str] = (),
    children: Sequence[tuple[str, Object]] = (),
    names: Sequence[str] = (),
    selector: Object | None = None,
    rules: Sequence[Object] = ({"apiGroups": ["*"], "resources": ["*"]},),
) -> Object:
    locations: Object = {"names": list(names)}
    if selector is not None:
        locations["selector"] = selector
    below = [{"path": path, "selector": chosen} for path, chosen in children]
    return {
        "apiVersion": "edge.kcp.io/v1alpha1",
        "kind": "LocationGrant",
        "metadata": meta(cluster, name, uid=f"uid-{name}", generation=1),
        "spec": {
            "mode": mode,
            "workspaces": {"paths": list(paths), "childrenOf": below},
            "locations": locations,
            "rules": list(rules),
        },
    }


def equal(**labels: str) -> Object:
    return {"matchLabels": labels}


def expression(key: str, operator: str, *values: str) -> Object:
    found: Object = {"key": key, "operator": operator}
    if values:
        found["values"] = list(values)
    return {"matchExpressions": [found]}


labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=3)
_some_values = st.lists(st.sampled_from(VALUES), min_size=1, max_size=3, unique=True)
_expressions = st.one_of(
    st.builds(
        lambda key, operator, values: {"key": key, "operator": operator, "values": values},
        st.sampled_from(KEYS),
        st.sampled_from(("In", "NotIn")),
        _some_values,
    ),
    st.builds(
        lambda key, operator: {"key": key, "operator": operator},
        st.sampled_from(KEYS),
        st.sampled_from(("Exists", "DoesNotExist")),
    ),
)
selectors = st.builds(
    lambda match, expressions: {"matchLabels": match, "matchExpressions": expressions},
    st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=2),
    st.lists(_expressions, max_size=2),
)
