"""The requests: verbs × kinds × options × malformed variants, in an order that repeats.

A case is a generator: it yields requests and is sent the answers, so that what a server chose (a
UID, a resourceVersion) can be part of the next request. Every request has a name that says what is
asked; the same names come in the same order for every server.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Generator, Iterator, Mapping
from typing import Any, NamedTuple

from tests.kit.differential.samples import KINDS, NAMESPACE, Kind, Raw, definition

JSON = "application/json"
_STRATEGIC, _MERGE = "application/strategic-merge-patch+json", "application/merge-patch+json"
_JSON_PATCH, _APPLY = "application/json-patch+json", "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


class Request(NamedTuple):
    """One request, and a name that says what is asked."""

    name: str
    method: str
    path: str
    body: Any = None
    query: str = ""
    type: str = JSON
    accept: str = JSON


class Reply(NamedTuple):
    """What a case gets to see of an answer."""

    status: int
    body: Any


Case = Generator[Request, Reply, None]


def cases() -> Iterator[Case]:
    """Yield every case."""
    for kind in KINDS:
        yield _creating(kind)
        yield _mutated(kind)
        yield _reading(kind)
        yield _listing(kind)
        yield _updating(kind)
        yield _patching(kind)
        yield _applying(kind)
        yield _subresources(kind)
        yield _deleting(kind)
    yield _paths()


def preparation() -> Case:
    """Make what the cases stand on."""
    yield Request("prepare: namespace", "POST", "/api/v1/namespaces",
                  {"metadata": {"name": NAMESPACE}})  # fmt: skip
    yield Request("prepare: account", "POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts",
                  {"metadata": {"name": "default"}})  # fmt: skip
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        **definition(),
    }
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    yield Request("prepare: definition", "POST", definitions, body)


# -- create ----------------------------------------------------------------------------------

_DRY = "dryRun=All"


def _creating(kind: Kind) -> Case:
    path = kind.collection

    def post(what: str, body: Any, query: str = _DRY, **more: Any) -> Request:
        return Request(f"create {_label(kind)}: {what}", "POST", path, body, query, **more)

    sample = kind.object()
    yield post("dry run", sample)
    yield post("unknown dry run", sample, "dryRun=Some")
    yield post("unknown field validation", sample, "fieldValidation=Maybe")
    yield post("field manager too long", sample, f"{_DRY}&fieldManager={'m' * 129}")
    yield post("field manager not printable", sample, f"{_DRY}&fieldManager=%07")
    yield post("another kind", {**sample, "kind": "Other"})
    yield post("another version", {**sample, "apiVersion": "v9"})
    yield post("another group", {**sample, "apiVersion": "other.example.com/v1"})
    yield post("without kind and version", {k: sample[k] for k in sample if k[0] not in "ak"})
    yield post("without a name", {**sample, "metadata": {}})
    yield post("without metadata", {k: sample[k] for k in sample if k != "metadata"})
    yield post("generated name", {**sample, "metadata": {"generateName": "made-"}})
    yield post("another namespace", kind.object(namespace="other"))
    yield post("with a resourceVersion", kind.object(resourceVersion="12"))
    yield post("with a uid", kind.object(uid="x"))
    for name in ("Upper", "a_b", "-a", "a/b", "..", "a" * 254, "a.b", "ä"):
        yield post(f"name {name[:8]}", kind.object(name))
    yield post("label value", kind.object(labels={"a": "not valid!"}))
    yield post("label key", kind.object(labels={"/": "x"}))
    yield post("label of another type", kind.object(labels={"a": 7}))
    yield post("annotation key", kind.object(annotations={"a b": "x"}))
    yield post("finalizer", kind.object(finalizers=["notqualified"]))
    yield post("owner without uid", kind.object(ownerReferences=[
        {"apiVersion": "v1", "kind": "Pod", "name": "p"}]))  # fmt: skip
    yield post("two controlling owners", kind.object(ownerReferences=[
        {"apiVersion": "v1", "kind": "Pod", "name": n, "uid": n, "controller": True}
        for n in ("p", "q")]))  # fmt: skip
    yield post("managed fields malformed", kind.object(managedFields=[{"manager": "x"}]))
    for mode in ("Strict", "Warn", "Ignore"):
        query = f"{_DRY}&fieldValidation={mode}"
        yield post(f"unknown field, {mode}", {**sample, "bogus": 1}, query)
        twice = json.dumps(sample)[:-1] + ', "kind": "' + kind.kind + '"}'
        yield post(f"field twice, {mode}", twice.encode(), query)
    for what, body in _MALFORMED:
        yield post(what, body)
    yield post("unsupported type", sample, type="text/plain")
    yield post("no type", sample, type="")
    yield post("yaml", json.dumps(sample).encode(), type="application/yaml")
    yield post("yaml malformed", b"a: [", type="application/yaml")
    yield post("as a table", sample, accept=f"{TABLE},{JSON}")
    yield post("as metadata", sample, accept=METADATA)
    yield post("not acceptable", sample, accept="text/html")
    yield post("for good", sample, "")
    yield post("again", sample, "")
    yield post("again, dry run", sample)
    yield Request(f"create {_label(kind)}: at a name", "POST", f"{path}/{kind.name}", sample)


_MALFORMED: tuple[tuple[str, bytes], ...] = (
    ("empty body", b""),
    ("not JSON", b"{"),
    ("a list", b"[]"),
    ("a text", b'"x"'),
    ("null", b"null"),
    ("not UTF-8", b'{"metadata": {"name": "\xff"}}'),
)

_LONG = "x" * 300
_INSTEAD: Mapping[type, tuple[tuple[str, Any], ...]] = {
    str: (("a number", 7), ("empty", ""), ("nonsense", "Not Valid!"), ("long", _LONG)),
    bool: (("a text", "x"),),
    int: (("a text", "x"), ("negative", -1), ("huge", 2**40), ("a fraction", 1.5)),
    dict: (("a text", "x"), ("empty", {}), ("a list", [])),
    list: (("a text", "x"), ("empty", []), ("a map", {})),
}


def _mutated(kind: Kind) -> Case:
    """Create with one place of the sample replaced, by everything that does not belong there."""
    sample = kind.object("mutated" if "." not in kind.name else "")
    for place in _places(sample):
        found = _at(sample, place)
        where = ".".join(str(each) for each in place)
        variants: list[tuple[str, Any]] = [*_INSTEAD[type(found)], ("null", None)]
        if isinstance(found, dict):
            variants.append(("with an unknown field", {**found, "bogus": 1}))
        for what, value in variants:
            body = copy.deepcopy(sample)
            _at(body, place[:-1])[place[-1]] = value
            yield _mutation(kind, f"{where} {what}", body)
        body = copy.deepcopy(sample)
        del _at(body, place[:-1])[place[-1]]
        yield _mutation(kind, f"{where} missing", body)


def _mutation(kind: Kind, what: str, body: Raw) -> Request:
    return Request(f"create {_label(kind)}: {what}", "POST", kind.collection, body, _DRY)


def _places(value: Any, so_far: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in entries:
        if so_far == () and key in ("apiVersion", "kind", "metadata"):
            continue
        yield (*so_far, key)
        if isinstance(each, dict | list) and len(so_far) < 7:
            yield from _places(each, (*so_far, key))


def _at(value: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        value = value[key]
    return value


# A watch takes a second, and a version of the future three: not every kind is asked for those.
_AWAITED = ("configmaps",)

# -- read ------------------------------------------------------------------------------------


def _reading(kind: Kind) -> Case:
    def get(what: str, query: str = "", name: str = kind.name, accept: str = JSON) -> Request:
        path = f"{kind.collection}/{name}"
        return Request(f"get {_label(kind)}: {what}", "GET", path, None, query, accept=accept)

    yield get("as JSON")
    yield get("absent", name="absent")
    yield get("as a table", accept=f"{TABLE},{JSON}")
    yield get("as metadata", accept=METADATA)
    yield get("as another table", accept="application/json;as=Table;v=v9;g=meta.k8s.io")
    yield get("as YAML", accept="application/yaml")
    yield get("not acceptable", accept="text/html")
    yield get("any version", "resourceVersion=0")
    yield get("version nonsense", "resourceVersion=x")
    if kind.resource in _AWAITED:
        yield get("version of the future", "resourceVersion=999999999999")
    yield get("pretty", "pretty=true")
    yield get("absent as a table", name="absent", accept=TABLE)


def _listing(kind: Kind) -> Case:
    def lists(what: str, query: str = "", path: str = kind.collection, **more: Any) -> Request:
        return Request(f"list {_label(kind)}: {what}", "GET", path, None, query, **more)

    mine = f"fieldSelector=metadata.name={kind.name}"
    yield lists("by name", mine)
    yield lists("by name as a table", mine, accept=f"{TABLE},{JSON}")
    yield lists("by name as metadata", mine, accept=METADATA_LIST)
    yield lists("table without objects", f"{mine}&includeObject=None", accept=TABLE)
    yield lists("table with odd objects", f"{mine}&includeObject=Odd", accept=TABLE)
    yield lists("everywhere by name", mine, kind.everywhere)
    yield lists("by label", "labelSelector=absent%3Dx")
    yield lists("label nonsense", "labelSelector=%21%21")
    yield lists("label operator", "labelSelector=a%20in%20b")
    yield lists("field nonsense", "fieldSelector=a")
    yield lists("unknown field", "fieldSelector=spec.bogus%3Dx")
    yield lists("limit nonsense", "limit=x")
    yield lists("limit negative", f"limit=-1&{mine}")
    yield lists("continue nonsense", "limit=1&continue=nonsense")
    yield lists("version nonsense", "resourceVersion=x")
    yield lists("match without version", "resourceVersionMatch=Exact")
    yield lists("match nonsense", "resourceVersion=1&resourceVersionMatch=Odd")
    yield lists("exact zero", "resourceVersion=0&resourceVersionMatch=Exact")
    yield lists("continue and version", "continue=x&resourceVersion=1")
    yield lists("initial events without watch", "sendInitialEvents=true")
    yield lists("timeout nonsense", f"timeoutSeconds=x&{mine}")
    yield lists("watch, match without events", "watch=true&resourceVersionMatch=NotOlderThan")
    if kind.resource in _AWAITED:
        yield lists("version of the future", f"resourceVersion=999999999999&{mine}")
        moment = "timeoutSeconds=1&resourceVersion=0"
        yield lists("watch of a moment", f"watch=true&{moment}&{mine}")
        yield lists("watch of nothing", f"watch=true&{moment}&{mine}x")
        yield lists("watch nonsense", f"watch=maybe&{moment}&{mine}x")
        yield lists("watch, continue", f"watch=true&continue=x&{moment}")
    yield lists("not acceptable", accept="text/html")


# -- update ----------------------------------------------------------------------------------


def _updating(kind: Kind) -> Case:
    path = f"{kind.collection}/{kind.name}"
    found = yield Request(f"update {_label(kind)}: get first", "GET", path)
    stored = found.body if found.status == 200 else kind.object()

    def put(what: str, body: Any, query: str = "", name: str = "") -> Request:
        where = f"{kind.collection}/{name}" if name else path
        return Request(f"update {_label(kind)}: {what}", "PUT", where, body, query)

    def with_metadata(**changes: Any) -> Raw:
        metadata = {**stored["metadata"], **changes}
        return {**stored, "metadata": {k: v for k, v in metadata.items() if v is not None}}

    yield put("unchanged", stored)
    yield put("dry run", with_metadata(labels={"a": "b"}), _DRY)
    yield put("old version", with_metadata(resourceVersion="1"))
    yield put("version nonsense", with_metadata(resourceVersion="x"), _DRY)
    yield put("no version", with_metadata(resourceVersion=None), _DRY)
    yield put("another name in the body", with_metadata(name="other"))
    yield put("no name in the body", with_metadata(name=None))
    yield put("another namespace", with_metadata(namespace="other"))
    yield put("another uid", with_metadata(uid="11111111-1111-4111-8111-111111111111"))
    yield put("creation time", with_metadata(creationTimestamp="2001-01-01T00:00:00Z"), _DRY)
    yield put("another kind", {**stored, "kind": "Other"})
    yield put("another version of the API", {**stored, "apiVersion": "v9"})
    yield put(
        "absent", with_metadata(name="absent", resourceVersion=None, uid=None), _DRY, "absent"
    )
    yield put("absent with a version", with_metadata(name="absent"), _DRY, "absent")
    yield put("unknown field, Strict", {**stored, "bogus": 1}, f"{_DRY}&fieldValidation=Strict")
    yield put("unknown field", {**stored, "bogus": 1}, _DRY)
    yield put("finalizer", with_metadata(finalizers=["bad"]), _DRY)
    yield put(
        "without its content", {k: stored[k] for k in ("apiVersion", "kind", "metadata")}, _DRY
    )
    for what, body in _MALFORMED:
        yield put(what, body)
    yield Request(f"update {_label(kind)}: the collection", "PUT", kind.collection, stored)


def _patching(kind: Kind) -> Case:
    path = f"{kind.collection}/{kind.name}"

    def patch(what: str, body: Any, media: str, query: str = _DRY, name: str = "") -> Request:
        where = f"{kind.collection}/{name}" if name else path
        return Request(f"patch {_label(kind)}: {what}", "PATCH", where, body, query, media)

    label: Raw = {"metadata": {"labels": {"a": "b"}}}
    for short, media in (("merge", _MERGE), ("strategic", _STRATEGIC)):
        yield patch(f"{short}", label, media)
        yield patch(f"{short}, nothing", {}, media)
        yield patch(f"{short}, absent", label, media, name="absent")
        yield patch(f"{short}, bad label", {"metadata": {"labels": {"a": "!"}}}, media)
        yield patch(f"{short}, another type", {"metadata": {"labels": "x"}}, media)
        yield patch(f"{short}, name", {"metadata": {"name": "other"}}, media)
        yield patch(f"{short}, old version", {"metadata": {"resourceVersion": "1"}}, media)
        yield patch(f"{short}, another uid", {"metadata": {"uid": "x"}}, media)
        yield patch(f"{short}, unknown field", {"bogus": 1}, media)
        yield patch(f"{short}, unknown field, Strict", {"bogus": 1}, media,
                    f"{_DRY}&fieldValidation=Strict")  # fmt: skip
        yield patch(f"{short}, forced", label, media, f"{_DRY}&force=true")
        for what, body in _MALFORMED:
            yield patch(f"{short}, {what}", body, media)
    add = {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}
    yield patch("JSON", [add], _JSON_PATCH)
    yield patch("JSON, test fails", [{"op": "test", "path": "/kind", "value": "x"}], _JSON_PATCH)
    yield patch("JSON, no such path", [{"op": "remove", "path": "/bogus"}], _JSON_PATCH)
    yield patch("JSON, no such operation", [{"op": "do", "path": "/kind"}], _JSON_PATCH)
    yield patch("JSON, not a list", {}, _JSON_PATCH)
    yield patch("JSON, absent", [add], _JSON_PATCH, name="absent")
    yield patch("JSON, not JSON", b"[", _JSON_PATCH)
    yield patch("JSON, kind", [{"op": "replace", "path": "/kind", "value": "x"}], _JSON_PATCH)
    yield patch("unsupported type", label, "text/plain")
    yield patch("plain JSON", label, JSON)
    yield Request(f"patch {_label(kind)}: the collection", "PATCH", kind.collection, label, "",
                  _MERGE)  # fmt: skip


_MANAGED = f"{_DRY}&fieldManager=me"


def _applying(kind: Kind) -> Case:
    path = f"{kind.collection}/{kind.name}"

    def apply(
        what: str, body: Any, query: str = f"{_DRY}&fieldManager=me", name: str = ""
    ) -> Request:
        where = f"{kind.collection}/{name}" if name else path
        return Request(f"apply {_label(kind)}: {what}", "PATCH", where, body, query, _APPLY)

    sample = kind.object()
    yield apply("the same", sample)
    yield apply("no manager", sample, _DRY)
    yield apply("forced", sample, f"{_DRY}&fieldManager=me&force=true")
    yield apply("force nonsense", sample, f"{_DRY}&fieldManager=me&force=maybe")
    yield apply("a label", kind.object(labels={"a": "b"}))
    yield apply("managed fields", kind.object(managedFields=[{"manager": "x"}]))
    yield apply("without kind", {k: sample[k] for k in sample if k != "kind"})
    yield apply("another kind", {**sample, "kind": "Other"})
    yield apply("without version", {k: sample[k] for k in sample if k != "apiVersion"})
    yield apply("unknown field", {**sample, "bogus": 1})
    yield apply("another name", kind.object("other"))
    yield apply("old version", kind.object(resourceVersion="1"))
    yield apply("what is absent", kind.object("fresh" if "." not in kind.name else ""),
                name="fresh" if "." not in kind.name else "")  # fmt: skip
    yield apply("a list", b"[]")
    yield apply("empty", b"")
    yield apply("not YAML", b"{")


# -- subresources, deletion ------------------------------------------------------------------


def _subresources(kind: Kind) -> Case:
    path = f"{kind.collection}/{kind.name}"

    def ask(what: str, method: str, ending: str, body: Any = None, media: str = JSON) -> Request:
        query = "" if method == "GET" else _DRY
        name = f"subresource of {_label(kind)}: {what}"
        return Request(name, method, f"{path}/{ending}", body, query, media)

    yield ask("unknown", "GET", "bogus")
    yield ask("unknown, written", "PUT", "bogus", kind.object())
    yield ask("two levels", "GET", "status/more")
    got = yield ask("status", "GET", "status")
    if kind.status and got.status == 200:
        yield ask("status, written", "PUT", "status", got.body)
        wrong = {**got.body, "status": "x"}
        yield ask("status, of another type", "PUT", "status", wrong)
        yield ask("status, patched", "PATCH", "status", {"status": {}}, _MERGE)
        yield ask("status, unknown field", "PATCH", "status", {"status": {"bogus": 1}}, _MERGE)
        yield ask("status, old version", "PATCH", "status",
                  {"metadata": {"resourceVersion": "1"}}, _MERGE)  # fmt: skip
        yield ask("status, deleted", "DELETE", "status")
        yield ask("status, created", "POST", "status", got.body)
    got = yield ask("scale", "GET", "scale")
    if kind.scale and got.status == 200:
        yield ask("scale, written", "PUT", "scale", got.body)
        more = copy.deepcopy(got.body)
        more["spec"] = {"replicas": 5}
        yield ask("scale, up", "PUT", "scale", more)
        yield ask("scale, negative", "PUT", "scale", {**more, "spec": {"replicas": -1}})
        yield ask("scale, a text", "PUT", "scale", {**more, "spec": {"replicas": "x"}})
        yield ask("scale, patched", "PATCH", "scale", {"spec": {"replicas": 2}}, _MERGE)
        yield ask("scale, another kind", "PUT", "scale", {**more, "kind": "Other"})


def _deleting(kind: Kind) -> Case:
    path = f"{kind.collection}/{kind.name}"

    def delete(what: str, body: Any = None, query: str = _DRY, name: str = "") -> Request:
        if isinstance(body, dict) and query:
            # Where there is a body, kube-apiserver looks at it and not at the query.
            body = {"dryRun": ["All"], **body}
        where = f"{kind.collection}/{name}" if name else path
        return Request(f"delete {_label(kind)}: {what}", "DELETE", where, body, query)

    yield delete("dry run")
    yield delete("absent", name="absent")
    yield delete("another uid", {"preconditions": {"uid": "x"}})
    yield delete("another version", {"preconditions": {"resourceVersion": "1"}})
    yield delete("odd propagation", {"propagationPolicy": "Odd"})
    yield delete("orphaning twice", {"propagationPolicy": "Orphan", "orphanDependents": True})
    yield delete("odd propagation by query", None, f"{_DRY}&propagationPolicy=Odd")
    yield delete("grace nonsense", None, f"{_DRY}&gracePeriodSeconds=x")
    yield delete("another kind", {"kind": "Other", "apiVersion": "v1"})
    yield delete("options of another group", {"kind": "DeleteOptions", "apiVersion": "x/v1"})
    yield delete("not JSON", b"{")
    yield delete("unknown field", {"bogus": 1})
    yield Request(f"delete {_label(kind)}: many, by label", "DELETE", kind.collection, None,
                  f"{_DRY}&labelSelector=absent%3Dx")  # fmt: skip
    yield Request(f"delete {_label(kind)}: many, label nonsense", "DELETE", kind.collection, None,
                  f"{_DRY}&labelSelector=%21%21")  # fmt: skip
    yield delete("for good", {"gracePeriodSeconds": 0}, "")


def _paths() -> Case:
    for path in (
        "/", "/api", "/apis", "/api/v1", "/api/v2", "/apis/apps", "/apis/apps/v1", "/apis/apps/v9",
        "/apis/bogus.example.com", "/apis/example.com/v1", "/version", "/healthz", "/livez",
        "/readyz", "/readyz/bogus", "/bogus", "/api/v1/bogus", "/apis/apps/v1/bogus",
        "/api/v1/namespaces/absent/configmaps", "/api/v1/namespaces/absent/configmaps/x",
        "/openapi/v2", "/openapi/v3", "/openapi/v3/apis/apps/v1", "/openapi/v3/bogus",
        "/api/v1/watch/configmaps?timeoutSeconds=1", "/api/v1/componentstatuses",
    ):  # fmt: skip
        where, _, query = path.partition("?")
        yield Request(f"path {path}", "GET", where, None, query)
        if "openapi" not in path and "watch" not in path:
            yield Request(f"path {path}: written", "POST", where, {})
            yield Request(f"path {path}: odd method", "TRACE", where)


def _label(kind: Kind) -> str:
    group = kind.version.rpartition("/")[0]
    older = "" if kind.name != "older" else " v1"
    return f"{kind.resource}.{group}{older}" if group else kind.resource
