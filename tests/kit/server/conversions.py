"""A definition with two versions between which a webhook converts, and that webhook."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.kit.server.webhooks import Review

V1 = "/apis/ex.io/v1/namespaces/default/cars"
V2 = "/apis/ex.io/v2/namespaces/default/cars"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def cars(client: dict[str, Any] | None, storage: str = "v1", **spec: Any) -> dict[str, Any]:
    """Return the definition; without a *client* its versions differ in name only."""
    conversion: dict[str, Any] = {"strategy": "None"}
    if client is not None:
        webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
        conversion = {"strategy": "Webhook", "webhook": webhook}
    schema = {"type": "object", "properties": {"spec": spec or _ANY, "status": _ANY}}
    return {
        "metadata": {"name": "cars.ex.io"},
        "spec": {
            "group": "ex.io",
            "names": {"plural": "cars", "singular": "car", "kind": "Car", "listKind": "CarList"},
            "scope": "Namespaced",
            "conversion": conversion,
            "versions": [
                {
                    "name": name,
                    "served": True,
                    "storage": name == storage,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": schema},
                }
                for name in ("v1", "v2")
            ],
        },
    }


def car(version: str, called: str, /, **spec: str) -> dict[str, Any]:
    metadata = {"name": called, "labels": {"k": "v"}}
    return {"apiVersion": f"ex.io/{version}", "kind": "Car", "metadata": metadata, "spec": spec}


def at_version(obj: dict[str, Any], api_version: str) -> dict[str, Any]:
    """Return *obj* at another version: v1 has a host with a port, v2 both apart."""
    made: dict[str, Any] = json.loads(json.dumps(obj))
    made["apiVersion"] = api_version
    spec = made.get("spec") or {}
    if api_version.endswith("v2") and "host" in spec:
        spec["name"], _, spec["port"] = spec.pop("host").partition(":")
    elif api_version.endswith("v1") and "name" in spec:
        spec["host"] = f"{spec.pop('name')}:{spec.pop('port', '')}"
    return made


Spoil = Callable[[dict[str, Any], list[Any]], Any]


def converting(spoil: Spoil | None = None) -> Callable[[Review], Any]:
    """Return what answers reviews; *spoil* may change the response and its objects."""

    def answer(review: Review) -> Any:
        asked = review["request"]
        objects = [at_version(each, asked["desiredAPIVersion"]) for each in asked["objects"]]
        response = {
            "uid": asked["uid"],
            "convertedObjects": objects,
            "result": {"status": "Success"},
        }
        replaced = None if spoil is None else spoil(response, objects)
        if replaced is not None:
            return replaced
        return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}

    return answer
