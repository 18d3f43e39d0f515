"""What Argo CD asks of a cluster: the sync of its cache, and how it applies.

The order is that of its cluster cache: version, schemas as protobuf, discovery; then for every kind
that can be listed and watched whether it may, all of it in pages of 500, and a watch from there.
Applying is kubectl's: by three-way patch with ``last-applied-configuration``, or on the server.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.kit.gitops.asking import Answer, Server
from tests.kit.gitops.shapes import Shape, shape

PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
AGGREGATED = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)
PAGE = 500
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
MANAGER = "fieldManager=argocd-controller"


class Kind(NamedTuple):
    """A kind as discovery names it."""

    group: str
    version: str
    resource: str

    @property
    def path(self) -> str:
        base = f"/apis/{self.group}" if self.group else "/api"
        return f"{base}/{self.version}/{self.resource}"


@dataclass(frozen=True)
class CacheSync:
    """What the sync of a cache came to.

    ``shapes`` of what is asked once, ``alike`` of what is asked for every kind: all shapes that
    there were, but for the kind itself, which ``kinds`` has by resource.
    """

    shapes: dict[str, Shape]
    alike: dict[str, list[Shape]]
    kinds: dict[str, str]
    pages: dict[Kind, int]

    def recorded(self) -> dict[str, Any]:
        """Return what is written down."""
        return {"shapes": self.shapes, "alike": self.alike, "kinds": self.kinds}


def discovered(server: Server) -> Iterator[Kind]:
    """Yield every kind that can be listed and watched, at its preferred version."""
    for root in ("/api", "/apis"):
        found = server.ask("GET", root, Accept=AGGREGATED).body
        assert found["kind"] == "APIGroupDiscoveryList", found["kind"]
        for group in found["items"]:
            name = group["metadata"].get("name", "")
            seen: set[str] = set()
            for version in group["versions"]:
                assert version.get("freshness", "Current") == "Current", (name, version["version"])
                for resource in version.get("resources") or ():
                    verbs = {"list", "watch"} <= set(resource["verbs"])
                    if verbs and resource["resource"] not in seen:
                        seen.add(resource["resource"])
                        yield Kind(name, version["version"], resource["resource"])


def cache_sync(server: Server) -> CacheSync:
    """Do as the cluster cache does when a cluster is added."""
    shapes = {
        "version": shape(server.ask("GET", "/version")),
        "openapi": shape(server.ask("GET", "/openapi/v2", Accept=PROTOBUF)),
        "discovery": shape(server.ask("GET", "/apis", Accept=AGGREGATED)),
        "discovery of a group": shape(server.ask("GET", "/apis/apps/v1")),
    }
    alike: dict[str, list[Shape]] = {"review": [], "list": [], "watch": []}
    kinds, pages = {}, {}
    for kind in discovered(server):
        review = shape(server.ask("POST", _REVIEWS, _review(kind)))
        page, pages[kind] = _listed(server, kind)
        listed = shape(page)
        version = page.body["metadata"]["resourceVersion"]
        status, content_type = server.opens(
            f"{kind.path}?watch=true&allowWatchBookmarks=true&resourceVersion={version}"
            "&timeoutSeconds=1"
        )
        watch = {"status": status, "contentType": content_type.partition(";")[0]}
        kinds[f"{kind.resource}.{kind.group}"] = f"{listed.pop('apiVersion')} {listed.pop('kind')}"
        for asked, found in (("review", review), ("list", listed), ("watch", watch)):
            if found not in alike[asked]:
                alike[asked].append(found)
    return CacheSync(shapes, alike, kinds, pages)


_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def _review(kind: Kind) -> dict[str, Any]:
    attributes = {"namespace": "*", "verb": "list", "resource": kind.resource, "group": kind.group}
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }


def _listed(server: Server, kind: Kind) -> tuple[Answer, int]:
    """List all of a kind by pages; returns the last page and how many there were."""
    token, number = "", 0
    while True:
        page = server.ask("GET", f"{kind.path}?limit={PAGE}{token}")
        number += 1
        assert page.status == 200, (kind, page.raw)
        more = page.body["metadata"].get("continue")
        if not more:
            return page, number
        token = f"&continue={more}"


def client_side_apply(server: Server, collection: str, obj: dict[str, Any]) -> dict[str, Shape]:
    """Apply as ``kubectl apply`` does: look, create or patch three ways, each first as a trial."""
    path = f"{collection}/{obj['metadata']['name']}"
    changed = json.loads(json.dumps(obj))
    changed["spec"]["replicas"] = 5
    created = _noted(obj)
    patch = {
        "metadata": {"annotations": {LAST_APPLIED: json.dumps(changed)}},
        "spec": {"replicas": 5},
    }
    strategic = {"Content_Type": "application/strategic-merge-patch+json"}
    trial = "dryRun=All&"
    return {
        "absent": shape(server.ask("GET", path)),
        "trial of create": shape(server.ask("POST", f"{collection}?{trial}{MANAGER}", created)),
        "absent after the trial": shape(server.ask("GET", path)),
        "create": shape(server.ask("POST", f"{collection}?{MANAGER}", created)),
        "create again": shape(server.ask("POST", f"{collection}?{MANAGER}", created)),
        "trial of patch": shape(
            server.ask("PATCH", f"{path}?{trial}{MANAGER}", patch, **strategic)
        ),
        "patch": shape(server.ask("PATCH", f"{path}?{MANAGER}", patch, **strategic)),
        "invalid patch": shape(
            server.ask("PATCH", f"{path}?{trial}{MANAGER}", {"metadata": _INVALID}, **strategic)
        ),
        "delete": shape(server.ask("DELETE", path, {"propagationPolicy": "Foreground", **_DELETE})),
    }


_INVALID = {"labels": {"app": "not a value"}}
_DELETE = {"apiVersion": "v1", "kind": "DeleteOptions"}


def _noted(obj: dict[str, Any]) -> dict[str, Any]:
    tracking = {
        LAST_APPLIED: json.dumps(obj),
        "argocd.argoproj.io/tracking-id": "shop:apps/Deployment:shop/web",
    }
    return {**obj, "metadata": {**obj["metadata"], "annotations": tracking}}


def server_side_apply(server: Server, collection: str, obj: dict[str, Any]) -> dict[str, Shape]:
    """Apply on the server: a trial for the diff, then for good, against another manager."""
    path = f"{collection}/{obj['metadata']['name']}"
    yaml_patch = {"Content_Type": "application/apply-patch+yaml"}
    rival = {**obj, "spec": {**obj["spec"], "replicas": 7}}
    return {
        "trial": shape(
            server.ask("PATCH", f"{path}?dryRun=All&force=true&{MANAGER}", obj, **yaml_patch)
        ),
        "absent after the trial": shape(server.ask("GET", path)),
        "apply": shape(server.ask("PATCH", f"{path}?force=true&{MANAGER}", obj, **yaml_patch)),
        "apply again": shape(
            server.ask("PATCH", f"{path}?force=true&{MANAGER}", obj, **yaml_patch)
        ),
        "conflict": shape(server.ask("PATCH", f"{path}?fieldManager=rival", rival, **yaml_patch)),
    }
