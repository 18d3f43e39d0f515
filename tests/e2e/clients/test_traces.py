"""What clients send, header for header, and what they make of the answers.

The requests are those of client-go's reflectors, of k9s, of kubectl and of the JavaScript and Java
clients, as they go over the wire.
"""

from __future__ import annotations

import base64
import gzip
import json
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.client import HTTPMessage, HTTPResponse, HTTPSConnection
from typing import Any

import pytest
import yaml

from skerry.server.security.pki import Credential
from skerry.testing import api_server
from tests.kit.server.certificates import client_context

GO = {
    "Accept": "application/vnd.kubernetes.protobuf,application/json",
    "Accept-Encoding": "gzip",
    "User-Agent": "controller/v0.0.0 (linux/amd64) kubernetes/$Format",
}
_META = "g=meta.k8s.io;v=v1"
METADATA_LIST = ",".join(
    f"application/{form};as=PartialObjectMetadataList;{_META}"
    for form in ("vnd.kubernetes.protobuf", "json")
)

METADATA = METADATA_LIST.replace("MetadataList", "Metadata")
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
KUBECTL = {
    "Accept-Encoding": "gzip",
    "Kubectl-Command": "kubectl get",
    "Kubectl-Session": "f7d4f5a2-1d1f-4d52-a5c1-9d8ab4f2c6f1",
    "User-Agent": "kubectl/v1.34.1 (linux/amd64) kubernetes/93248f9",
}
NODE = {"Accept": "application/json, */*;q=0.8", "Connection": "keep-alive"}
OKHTTP = {"Accept": "application/json", "Accept-Encoding": "gzip", "User-Agent": "okhttp/4.12.0"}
MAPS = "/api/v1/namespaces/traces/configmaps"


class Api:
    """A server as a client sees it: one connection a request."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext) -> None:
        self._host, self._port, self._context = host, port, context

    @contextmanager
    def open(
        self, method: str, path: str, headers: dict[str, str], body: object = None
    ) -> Iterator[HTTPResponse]:
        connection = HTTPSConnection(self._host, self._port, context=self._context, timeout=30)
        raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        with closing(connection):
            connection.request(method, path, raw, headers)
            with connection.getresponse() as answer:
                yield answer

    def __call__(
        self, method: str, path: str, headers: dict[str, str], body: object = None
    ) -> tuple[int, HTTPMessage, Any]:
        with self.open(method, path, headers, body) as answer:
            raw = answer.read()
            if answer.headers["Content-Encoding"] == "gzip":
                raw = gzip.decompress(raw)
            return answer.status, answer.headers, json.loads(raw)


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with api_server() as server:
        document = yaml.safe_load(server.kubeconfig.read_text())
        cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
        of = {**cluster, **user}

        def data(name: str) -> bytes:
            return base64.b64decode(of[f"{name}-data"])

        shown = Credential(data("client-certificate"), data("client-key"))
        host, _, port = server.url.removeprefix("https://").partition(":")
        made = Api(host, int(port), client_context(data("certificate-authority"), shown))
        sent = {"Content-Type": "application/json"}
        made("POST", "/api/v1/namespaces", sent, {"metadata": {"name": "traces"}})
        for number in range(3):
            named = {"metadata": {"name": f"c{number}"}, "data": {"k": "x" * 60_000}}
            assert made("POST", MAPS, sent, named)[0] == 201
        yield made


def events(answer: HTTPResponse, count: int) -> list[Any]:
    return [json.loads(answer.readline()) for _ in range(count)]


def test_a_reflector_lists_by_watching(api: Api) -> None:
    query = "allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true"
    path = f"{MAPS}?{query}&timeout=6m12s&timeoutSeconds=372&watch=true"
    with api.open("GET", path, GO) as answer:
        assert answer.status == 200
        assert answer.getheader("Content-Encoding") is None, "a watch is sent as it comes"
        *added, mark = events(answer, 4)
    assert [event["type"] for event in added] == ["ADDED"] * 3
    assert mark["type"] == "BOOKMARK"
    metadata = mark["object"]["metadata"]
    assert metadata["annotations"]["k8s.io/initial-events-end"] == "true"
    assert int(metadata["resourceVersion"]) > 0


def test_a_reflector_lists_then_watches_from_there(api: Api) -> None:
    status, headers, listed = api("GET", f"{MAPS}?limit=500&resourceVersion=0", GO)
    assert (status, headers["Content-Encoding"]) == (200, "gzip")
    assert len(listed["items"]) == 3
    version = listed["metadata"]["resourceVersion"]
    path = (
        f"{MAPS}?allowWatchBookmarks=true&resourceVersion={version}&timeoutSeconds=301&watch=true"
    )
    with api.open("GET", path, GO) as answer:
        sent = {"Content-Type": "application/json"}
        api("POST", MAPS, sent, {"metadata": {"name": "later"}})
        (event,) = events(answer, 1)
    api("DELETE", f"{MAPS}/later", sent)
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "later")


def test_an_informer_of_metadata_gets_nothing_else(api: Api) -> None:
    _, headers, listed = api("GET", f"{MAPS}?limit=500", {**GO, "Accept": METADATA_LIST})
    assert headers["Content-Type"] == "application/json"
    assert listed["kind"] == "PartialObjectMetadataList"
    assert all(item.keys() == {"kind", "apiVersion", "metadata"} for item in listed["items"])
    with api.open("GET", f"{MAPS}?watch=true", {**GO, "Accept": METADATA}) as answer:
        (event,) = events(answer, 1)
    assert event["object"]["kind"] == "PartialObjectMetadata"
    assert "data" not in event["object"]


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/pods",
        "/api/v1/nodes",
        MAPS,
        "/apis/apps/v1/deployments",
        "/apis/batch/v1/jobs",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    ],
)
def test_k9s_reads_tables_of_every_kind(api: Api, path: str) -> None:
    _, _, table = api("GET", path, {**GO, "Accept": TABLE})
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert table["columnDefinitions"][0]["name"] == "Name"
    assert all(row["object"]["kind"] == "PartialObjectMetadata" for row in table["rows"])


def test_k9s_watches_tables_whose_columns_come_once(api: Api) -> None:
    path = f"{MAPS}?includeObject=Metadata&watch=true&resourceVersion=0"
    with api.open("GET", path, {**GO, "Accept": TABLE}) as answer:
        first, second = events(answer, 2)
    assert first["object"]["columnDefinitions"]
    assert not second["object"].get("columnDefinitions")
    assert len(second["object"]["rows"]) == 1


def test_k9s_asks_what_it_may_do_with_every_kind_at_once(api: Api) -> None:
    def may(resource: str) -> bool:
        attributes = {"namespace": "traces", "verb": "list", "resource": resource}
        review = {
            "kind": "SelfSubjectAccessReview",
            "apiVersion": "authorization.k8s.io/v1",
            "metadata": {},
            "spec": {"resourceAttributes": attributes},
            "status": {"allowed": False},
        }
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        status, _, found = api("POST", path, {"Content-Type": "application/json"}, review)
        assert status == 201
        return bool(found["status"]["allowed"])

    with ThreadPoolExecutor(20) as pool:
        assert all(pool.map(may, ["pods", "secrets", "configmaps", "nodes"] * 10))


@pytest.mark.parametrize("version", ["v2", "v2beta1"])
def test_discovery_comes_in_one_piece_and_once(api: Api, version: str) -> None:
    accept = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    status, headers, found = api("GET", "/apis", {**GO, "Accept": f"{accept},application/json"})
    assert (status, headers["Content-Type"]) == (200, accept)
    assert found["kind"] == "APIGroupDiscoveryList"
    again = {**GO, "Accept": accept, "If-None-Match": headers["Etag"]}
    with api.open("GET", "/apis", again) as answer:
        assert (answer.status, answer.read()) == (304, b"")


def test_the_java_client_walks_discovery_group_by_group(api: Api) -> None:
    _, _, versions = api("GET", "/api", OKHTTP)
    assert (versions["kind"], versions["versions"]) == ("APIVersions", ["v1"])
    _, _, groups = api("GET", "/apis", OKHTTP)
    assert groups["kind"] == "APIGroupList"
    for group in groups["groups"]:
        path = f"/apis/{group['preferredVersion']['groupVersion']}"
        status, _, listed = api("GET", path, OKHTTP)
        assert (status, listed["kind"]) == (200, "APIResourceList")
        assert all(each["kind"] and each["verbs"] for each in listed["resources"])


@pytest.mark.parametrize("accept", ["application/json", "*/*", "application/json, */*;q=0.5"])
def test_openapi_is_had_by_whoever_takes_json(api: Api, accept: str) -> None:
    status, headers, found = api("GET", "/openapi/v2", {**OKHTTP, "Accept": accept})
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert found["swagger"] == "2.0"
    assert "io.k8s.api.core.v1.ConfigMap" in found["definitions"]


def test_the_javascript_client_leaves_kinds_out_and_sends_json_as_yaml(api: Api) -> None:
    sent = {**NODE, "Content-Type": "application/json"}
    status, _, made = api("POST", MAPS, sent, {"metadata": {"name": "js"}, "data": {"k": "v"}})
    assert (status, made["kind"]) == (201, "ConfigMap")
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "js"}}
    headers = {**NODE, "Content-Type": "application/apply-patch+yaml"}
    path = f"{MAPS}/js?fieldManager=js&force=true"
    status, _, made = api("PATCH", path, headers, {**applied, "data": {"a": "1"}})
    assert (status, made["data"]) == (200, {"k": "v", "a": "1"})
    status, _, ended = api("DELETE", f"{MAPS}/js", sent, {})
    assert (status, ended["status"]) == (200, "Success")


def test_kubectl_compares_without_writing(api: Api) -> None:
    """kubectl diff: what applying would make, of an object that is not there yet."""
    headers = {
        **KUBECTL,
        "Accept": "application/json",
        "Content-Type": "application/apply-patch+yaml",
        "Kubectl-Command": "kubectl diff",
    }
    options = "dryRun=All&fieldManager=kubectl-client-side-apply&fieldValidation=Strict&force=true"
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "diffed"}}
    status, _, made = api("PATCH", f"{MAPS}/diffed?{options}", headers, obj)
    assert (status, made["metadata"]["name"]) == (201, "diffed")
    assert api("GET", f"{MAPS}/diffed", KUBECTL)[0] == 404


def test_kubectl_waits_for_one_object_by_its_name(api: Api) -> None:
    selected = "fieldSelector=metadata.name%3Dwaited"
    headers = {**KUBECTL, "Accept": "application/json", "Kubectl-Command": "kubectl wait"}
    _, _, listed = api("GET", f"{MAPS}?{selected}&limit=500&resourceVersion=0", headers)
    assert listed["items"] == []
    version = listed["metadata"]["resourceVersion"]
    path = f"{MAPS}?allowWatchBookmarks=true&{selected}&resourceVersion={version}&watch=true"
    with api.open("GET", path, headers) as answer:
        sent = {"Content-Type": "application/json"}
        for name in ("other", "waited"):
            api("POST", MAPS, sent, {"metadata": {"name": name}})
        (event,) = events(answer, 1)
    for name in ("other", "waited"):
        api("DELETE", f"{MAPS}/{name}", sent)
    assert event["object"]["metadata"]["name"] == "waited"


def test_kubectl_lists_everything_one_may_do(api: Api) -> None:
    review = {
        "kind": "SelfSubjectRulesReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {},
        "spec": {"namespace": "traces"},
        "status": {"resourceRules": None, "nonResourceRules": None, "incomplete": False},
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    headers = {**KUBECTL, "Accept": "application/json", "Content-Type": "application/json"}
    status, _, found = api("POST", path, headers, review)
    assert status == 201
    assert {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]} in found["status"][
        "resourceRules"
    ]
