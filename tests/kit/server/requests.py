"""Requests made up by Hypothesis: nearly right, and wrong in every way we could think of."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

import orjson
from hypothesis import strategies as st

from skerry.api.schema import Schema
from skerry.logic.machinery import crd
from skerry.logic.machinery.resource import Resource
from skerry.server.catalogue import builtin_types
from tests.kit.server.objects import NAMESPACE, POPULATION, definition


def _types() -> list[Resource]:
    """Every type of the server the tests ask, its one custom type too."""
    defined = definition()
    crd.default_crd(defined)
    return [*builtin_types(), *crd.resources_of(defined)]


_TYPES = _types()
TYPES = sorted({r.info.gvr for r in _TYPES})
NAMESPACED = {r.info.gvr for r in _TYPES if r.info.namespaced}
SUBRESOURCES = sorted({sub.name for r in _TYPES for sub in r.info.subresources})
KINDS = {tuple(r.info.gvr): (r.info.api_version, r.info.kind) for r in _TYPES}

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW"]
CONTENT_TYPES = [
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "text/plain",
    "",
    "application/json; charset=utf-8",
    ";;",
]
ACCEPTS = [
    "",
    "*/*",
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/vnd.kubernetes.protobuf,application/json",
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/json;as=Unicorn;v=v9;g=meta.k8s.io",
    "image/png",
    ";=;,",
]

_odd_numbers = st.sampled_from(["-1", "0", "1", "5", "99999999999999999999", "1e3", "x", "", "٣"])
_odd_truths = st.sampled_from(["true", "false", "1", "0", "", "maybe"])
_selectors = st.one_of(
    st.sampled_from(
        ["a=b", "a in (b,c)", "!a", "a!=b", "a notin ()", "a=b,", "=", "in", "a in (", ",,", "é=1"]
    ),
    st.text(max_size=12),
)
_fields = st.one_of(
    st.sampled_from(
        [
            "metadata.name=a",
            "metadata.namespace!=b",
            "status.phase=Pending",
            "spec.nodeName=",
            "spec.size=3",
            "nothing=1",
            "=",
            "metadata.name",
            "metadata.name=a\\,b",
        ]
    ),
    st.text(max_size=12),
)
PARAMETERS: dict[str, st.SearchStrategy[str]] = {
    "labelSelector": _selectors,
    "fieldSelector": _fields,
    "limit": _odd_numbers,
    "continue": st.one_of(st.text(max_size=20), st.just("eyJydiI6MSwic3RhcnQiOiJ4In0")),
    "resourceVersion": _odd_numbers,
    "resourceVersionMatch": st.sampled_from(["Exact", "NotOlderThan", "", "Whatever"]),
    "watch": _odd_truths,
    "timeoutSeconds": _odd_numbers,
    "allowWatchBookmarks": _odd_truths,
    "sendInitialEvents": _odd_truths,
    "dryRun": st.sampled_from(["All", "", "Some"]),
    "fieldManager": st.text(max_size=8),
    "fieldValidation": st.sampled_from(["Strict", "Warn", "Ignore", "", "Loose"]),
    "force": _odd_truths,
    "pretty": _odd_truths,
    "includeObject": st.sampled_from(["None", "Metadata", "Object", "", "Half"]),
    "gracePeriodSeconds": _odd_numbers,
    "propagationPolicy": st.sampled_from(["Background", "Foreground", "Orphan", "", "Sideways"]),
    "orphanDependents": _odd_truths,
    "container": st.text(max_size=5),
    "hash": st.text(max_size=5),
}

names = st.one_of(
    st.sampled_from(sorted({obj["metadata"]["name"] for _, obj in POPULATION} | {"nobody"})),
    st.text(min_size=1, max_size=10),
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(min_value=-(2**63), max_value=2**64),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(["1Gi", "-5m", "2030-01-01T00:00:00Z", "a=b", "None", "NodePort", "Orphan"]),
)
junk = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(
                st.sampled_from(["metadata", "spec", "status", "name", "$patch", "apiVersion"]),
                st.text(max_size=6),
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=10,
)


def _paths_in(value: Any, prefix: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [prefix] if prefix else []
    if isinstance(value, dict):
        for name, inner in value.items():
            found += _paths_in(inner, (*prefix, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            found += _paths_in(inner, (*prefix, index))
    return found


@st.composite
def mutated(draw: st.DrawFn, original: Any) -> Any:
    """An object with a few members replaced, removed or added."""
    obj = orjson.loads(orjson.dumps(original))
    for _ in range(draw(st.integers(0, 3))):
        paths = _paths_in(obj)
        if not paths:
            break
        *parents, last = draw(st.sampled_from(paths))
        node = obj
        for step in parents:
            node = node[step]
        change = draw(st.sampled_from(["replace", "remove", "add", "wrap"]))
        if change == "remove":
            del node[last]
        elif change == "replace":
            node[last] = draw(junk)
        elif change == "wrap":
            node[last] = draw(st.sampled_from([[node[last]], {"x": node[last]}]))
        elif isinstance(node, dict):
            node[draw(st.text(max_size=6))] = draw(junk)
    return obj


json_patches = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {
                "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "fly"]),
                "path": st.one_of(
                    st.sampled_from(
                        [
                            "",
                            "/metadata/labels/a",
                            "/metadata/name",
                            "/spec",
                            "/spec/containers/-",
                            "/spec/containers/0/image",
                            "/data/~1",
                            "/metadata",
                            "nopath",
                            "/status",
                        ]
                    ),
                    st.text(max_size=8),
                ),
            },
            optional={"value": junk, "from": st.sampled_from(["/spec", "/metadata", "", "x"])},
        ),
        junk,
    ),
    max_size=3,
)


@st.composite
def bodies(draw: st.DrawFn, gvr: tuple[str, str, str]) -> bytes:
    """A body: an object of the type or of another, bent a little; a patch; or no object at all."""
    kind = draw(st.sampled_from(["object", "object", "object", "patch", "junk", "bytes", "deep"]))
    if kind == "bytes":
        return draw(st.binary(max_size=40))
    if kind == "deep":
        return b'{"a":' * draw(st.integers(1, 3000)) + b"1"
    if kind == "junk":
        return _json(draw(junk))
    if kind == "patch":
        return _json(draw(json_patches))
    same: list[Any] = [obj for of, obj in POPULATION if of == gvr]
    if same and not draw(st.sampled_from([False, False, False, True])):
        template: Any = draw(st.sampled_from(same))
    else:
        api_version, named = KINDS.get(gvr, ("v1", "Pod"))
        template = {
            "apiVersion": api_version,
            "kind": named,
            "metadata": {"name": "made", "labels": {"a": "b"}},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}},
            "data": {"k": "v"},
        }
    return _json(draw(mutated(template)))


def _json(document: Any) -> bytes:
    try:
        return orjson.dumps(document)
    except TypeError:
        return repr(document).encode()


@st.composite
def paths(draw: st.DrawFn) -> tuple[str, tuple[str, str, str]]:
    """A path that leads somewhere, mostly, and the type it names."""
    gvr = draw(st.sampled_from(TYPES))
    if not draw(st.integers(0, 9)):
        parts = draw(st.lists(st.one_of(st.text(max_size=6), names), max_size=7))
        first = draw(st.sampled_from(["api", "apis", "openapi", "healthz", "", "metrics"]))
        return "/" + "/".join([first, *parts]), ("", "v1", "pods")
    group, version, resource = gvr
    path = f"/apis/{group}/{version}" if group else f"/api/{version}"
    if not draw(st.integers(0, 19)):
        path += "/watch"
    if tuple(gvr) in NAMESPACED and draw(st.integers(0, 4)):
        path += f"/namespaces/{draw(st.sampled_from([NAMESPACE, NAMESPACE, 'nowhere', '']))}"
    path += f"/{resource}"
    if draw(st.booleans()):
        path += f"/{draw(names)}"
        if draw(st.booleans()):
            path += f"/{draw(st.sampled_from([*SUBRESOURCES, 'nothing', 'proxy/a/b']))}"
    return path, gvr


@st.composite
def wild(draw: st.DrawFn) -> tuple[str, str, bytes, dict[str, str]]:
    """Any method on any path with any body."""
    path, gvr = draw(paths())
    headers = {
        "content-type": draw(st.sampled_from(CONTENT_TYPES)),
        "accept": draw(st.sampled_from(ACCEPTS)),
        "user-agent": draw(st.text(max_size=5)),
    }
    path = draw(queried(path))
    return draw(st.sampled_from(METHODS)), path, draw(bodies(gvr)), headers


@st.composite
def queried(draw: st.DrawFn, /, path: str, **fixed: str) -> str:
    """*path* with a few query parameters."""
    query = dict(fixed)
    for name in draw(st.lists(st.sampled_from(sorted(PARAMETERS)), max_size=2)):
        query[name] = draw(PARAMETERS[name])
    if not query:
        return path
    return f"{path}?{urlencode(query, quote_via=quote, errors='surrogatepass')}"


def _collection(gvr: tuple[str, str, str]) -> str:
    group, version, resource = gvr
    path = f"/apis/{group}/{version}" if group else f"/api/{version}"
    if tuple(gvr) in NAMESPACED:
        path += f"/namespaces/{NAMESPACE}"
    return f"{path}/{resource}"


@st.composite
def schema_objects(draw: st.DrawFn, schema: Schema, depth: int = 0) -> Any:
    """A value that fits *schema*, more or less: some members, some of them null or wrong."""
    if not draw(st.integers(0, 15)):
        return draw(junk)
    if schema.type == "object" or schema.property_names:
        if depth > 5:
            return {}
        chosen = [name for name in schema.property_names if name in _USUAL]
        if schema.property_names:
            some = st.sampled_from(sorted(schema.property_names))
            chosen += draw(st.lists(some, max_size=4))
        found = {}
        for name in dict.fromkeys([*schema.required, *chosen]):
            child = schema.field(name)
            if child is not None and name not in ("apiVersion", "kind"):
                found[name] = draw(schema_objects(child, depth + 1))
        if schema.additional is not None:
            found["a"] = draw(schema_objects(schema.additional, depth + 1))
        return found
    if schema.type == "array":
        if schema.items is None or depth > 5:
            return []
        return [
            draw(schema_objects(schema.items, depth + 1)) for _ in range(draw(st.integers(0, 2)))
        ]
    return draw(_LEAVES.get(schema.type, scalars))


# Without these next to nothing passes the first check.
_USUAL = frozenset(
    {"metadata", "spec", "name", "containers", "image", "selector", "template", "matchLabels"}
)
_LEAVES: dict[str, st.SearchStrategy[Any]] = {
    "string": st.sampled_from(
        [
            *("a", "b", "x-1", "", "Always", "Never", "1Gi", "100m", "TCP", "80", "a/b", "http"),
            *("10.0.0.1", "2030-01-01T00:00:00Z", "example.org", "Exists", "In", "UTC", "YQ=="),
            *("*", "ClusterIP", "*/5 * * * *"),
        ]
    ),
    "integer": st.sampled_from([0, 1, 2, 80, -1, 30000, 2**31, 2**63]),
    "number": st.sampled_from([0, 1.5, -2]),
    "boolean": st.booleans(),
}


@st.composite
def creations(draw: st.DrawFn) -> tuple[str, str, bytes, dict[str, str]]:
    """A create of an object made from its type's schema, or of a known one, bent."""
    if draw(st.booleans()):
        gvr, known = draw(st.sampled_from(POPULATION))
        obj = draw(mutated({**known, "metadata": {**known["metadata"], "name": "other"}}))
    else:
        resource = draw(st.sampled_from(_TYPES))
        gvr, info = resource.info.gvr, resource.info
        obj = draw(schema_objects(resource.schema))
        if isinstance(obj, dict):
            obj |= {"apiVersion": info.api_version, "kind": info.kind}
            if isinstance(obj.get("metadata"), dict):
                obj["metadata"] = {"name": draw(names), "labels": {"a": "b"}}
    path = draw(queried(_collection(gvr)))
    return "POST", path, _json(obj), {"content-type": "application/json"}


@st.composite
def changes(draw: st.DrawFn) -> tuple[str, str, bytes, dict[str, str]]:
    """A change, by any verb, of an object that is there, or of a part of it."""
    gvr, known = draw(st.sampled_from(POPULATION))
    path = f"{_collection(gvr)}/{known['metadata']['name']}"
    declared = [s for r in _TYPES if r.info.gvr == gvr for s in r.info.subresources]
    verbs = ["update", "patch", "delete", "create", "get"]
    if draw(st.booleans()) and declared:
        below = draw(st.sampled_from(declared))
        path, verbs = f"{path}/{below.name}", list(below.verbs)
    verb = draw(st.sampled_from(verbs))
    method = {"update": "PUT", "patch": "PATCH", "delete": "DELETE", "create": "POST"}.get(verb)
    if method == "PATCH":
        return draw(_patches(path, known))
    body = draw(st.sampled_from([known, _DELETE_OPTIONS, _BINDING, _SCALE, _EVICTION, {}]))
    sent = _json(draw(mutated(body)))
    return method or "GET", draw(queried(path)), sent, {"content-type": "application/json"}


_DELETE_OPTIONS = {
    "kind": "DeleteOptions",
    "apiVersion": "v1",
    "gracePeriodSeconds": 0,
    "propagationPolicy": "Foreground",
    "preconditions": {"uid": "x", "resourceVersion": "1"},
    "dryRun": ["All"],
}
_BINDING = {"kind": "Binding", "metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}}
_SCALE = {"kind": "Scale", "metadata": {"name": "a"}, "spec": {"replicas": 2}}
_EVICTION = {"kind": "Eviction", "metadata": {"name": "a"}, "deleteOptions": _DELETE_OPTIONS}


@st.composite
def _patches(
    draw: st.DrawFn, path: str, known: dict[str, Any]
) -> tuple[str, str, bytes, dict[str, str]]:
    media = draw(st.sampled_from(CONTENT_TYPES[3:7]))
    headers = {"content-type": media}
    if "json-patch" in media:
        return "PATCH", draw(queried(path)), _json(draw(json_patches)), headers
    body = _json(draw(mutated(known)))
    fixed = {"fieldManager": "fuzz", "force": "true"} if "apply" in media else {}
    return "PATCH", draw(queried(path, **fixed)), body, headers


def requests() -> st.SearchStrategy[tuple[str, str, bytes, dict[str, str]]]:
    """Method, path with query, body and headers."""
    return st.one_of(creations(), changes(), wild())
