"""Requests made to stop a server, by class. Each is legal to send for an ordinary user.

``ATTACKS`` is the list; a further one joins by an entry. Bodies are made when they are sent, so
that the list costs nothing to look at.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

Body = Callable[[], bytes]
JSON = "application/json"
YAML = "application/yaml"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
PROTOBUF = "application/vnd.kubernetes.protobuf"

NAMESPACE = "/api/v1/namespaces/default"
MAPS = f"{NAMESPACE}/configmaps"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
BATCH = "/apis/batch/v1/namespaces/default"
NETWORK = "/apis/networking.k8s.io/v1/namespaces/default"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/example.org/v1/namespaces/default/things"
# Bodies up to this many bytes must not hold the loop for 20 ms, larger ones not for 60.
SMALL_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Attack:
    """One request, to a hub's workspace or to a plain server. ``part`` says what it is aimed at."""

    part: str
    name: str
    method: str
    path: str
    media: str = JSON
    body: Body = bytes
    where: Literal["hub", "plain"] = "hub"
    accept: str = ""
    # How often it is sent, over as many connections.
    times: int = 2


def _dumped(obj: Any) -> bytes:
    return json.dumps(obj, separators=(",", ":")).encode()


def _config_map(**members: Any) -> dict[str, Any]:
    metadata = {"name": "hostile", **members.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **members}


def _many(count: int, value: Any = "v", prefix: str = "k") -> dict[str, Any]:
    return {f"{prefix}{i}": value for i in range(count)}


def _with_metadata(**metadata: Any) -> Body:
    return lambda: _dumped(_config_map(metadata=metadata))


# -- YAML --------------------------------------------------------------------------------------


def _alias_bomb(lines: int) -> bytes:
    first = b"a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    return first + b"".join(
        b"%c: &%c [%s]\n" % (98 + i, 98 + i, b", ".join([b"*%c" % (97 + i)] * 10))
        for i in range(lines)
    )


def _merge_chain(links: int) -> bytes:
    return b"x0: &x0 {k0: 1}\n" + b"".join(
        b"x%d: &x%d {<<: *x%d, k%d: 1}\n" % (i, i, i - 1, i) for i in range(1, links)
    )


_YAML_HEAD = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hostile}\n"
_YAML: dict[str, Body] = {
    "40,000 flow sequences (review)": lambda: b"x: " + b"[" * 40_000 + b"]" * 40_000,
    "aliases to 10^9 values (review)": lambda: _alias_bomb(9),
    "merge chain of 4,000 (review)": lambda: _merge_chain(4_000),
    "3 MB of brackets": lambda: b"[" * 3_000_000,
    "40,000 flow mappings": lambda: b"x: " + b"{a: " * 40_000,
    "40,000 block sequences": lambda: b"- " * 40_000 + b"x",
    "anchored and tagged nesting": lambda: b"x: " + b"&a !!seq [" * 40_000,
    "10,000 tag directives": lambda: (
        b"".join(b"%%TAG !a%d! x\n" % i for i in range(10_000)) + b"---\nx: 1"
    ),
    "100,000 documents": lambda: b"--- 1\n" * 100_000,
    "long text, repeated": lambda: b"a: &a " + b"x" * 100_000 + b"\nb: [" + b"*a, " * 900 + b"]",
    "250 KB of values": lambda: _YAML_HEAD + b"data: [" + b"1," * 120_000 + b"]",
    "250 KB of keys": lambda: (
        _YAML_HEAD + b"data:\n" + b"".join(b"  k%d: v\n" % i for i in range(21_000))
    ),
    "3 MB of keys": lambda: (
        _YAML_HEAD
        + b"data:\n"
        + b"".join(b"  key-number-%d: some-value\n" % i for i in range(95_000))
    ),
    "3 MB of one text": lambda: _YAML_HEAD + b"data:\n  k: |\n" + b"    text\n" * 330_000,
    "comments": lambda: b"#\n" * 1_500_000 + _YAML_HEAD,
}


# -- JSON --------------------------------------------------------------------------------------


def _unknown(count: int) -> Body:
    return lambda: _dumped({**_config_map(), **_many(count, 1, "unknown-key-")})


_JSON: dict[str, Body] = {
    "180,000 unknown keys (review)": lambda: _dumped({**_config_map(), **_many(180_000, 1)}),
    "95,000 unknown keys": _unknown(95_000),
    "11,000 unknown keys": _unknown(11_000),
    "250 KB of empty objects": lambda: _dumped(_config_map(data=[{}] * 80_000)),
    "3 MB of empty lists": lambda: b'{"x":[' + b"[]," * 1_000_000 + b"[]]}",
    "3 MB of brackets": lambda: b"[" * 3_000_000,
    "nested 199 levels": lambda: b'{"a":' * 199 + b"1" + b"}" * 199,
    "30,000 keys given twice": lambda: (
        b'{"kind":"ConfigMap","data":{' + b",".join(b'"k":"v"' for _ in range(30_000)) + b"}}"
    ),
    "99,000 keys": lambda: _dumped(_config_map(data=_many(60_000, "a value of some length"))),
    "20,000 keys": lambda: _dumped(_config_map(data=_many(20_000, ""))),
    "a text of 3 MB": lambda: _dumped(_config_map(data={"k": "x" * 3_000_000})),
    "a number of 3 MB": lambda: b'{"metadata":{"generation":' + b"9" * 3_000_000 + b"}}",
    "a lone surrogate": lambda: b'{"metadata":{"name":"\\ud800"}}',
    "10,000 labels": _with_metadata(labels=_many(10_000)),
    "10,000 annotations": _with_metadata(annotations=_many(10_000)),
    "10,000 finalizers": _with_metadata(finalizers=[f"a/b{i}" for i in range(10_000)]),
    "5,000 controllers": _with_metadata(
        ownerReferences=[
            {"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u", "controller": True}
        ]
        * 5_000
    ),
    "2,000 field managers": _with_metadata(
        managedFields=[
            {
                "manager": f"m{i}",
                "operation": "Update",
                "apiVersion": "v1",
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:data": {}},
            }
            for i in range(2_000)
        ]
    ),
    "a name of 3 MB": _with_metadata(name="a" * 3_000_000),
    "a label of 3 MB": _with_metadata(labels={"a": "-" * 3_000_000}),
}


# -- patches -----------------------------------------------------------------------------------


def _copies() -> bytes:
    start = {"op": "add", "path": "/data", "value": {"a": "x" * 100}}
    return _dumped(
        [start] + [{"op": "copy", "from": "/data", "path": f"/data/b{i}"} for i in range(5_000)]
    )


_PATCHES: dict[str, tuple[str, Body]] = {
    "JSON patch that doubles": (JSON_PATCH, _copies),
    "JSON patch of 10,000 insertions": (
        JSON_PATCH,
        lambda: _dumped(
            [{"op": "add", "path": "/metadata/finalizers", "value": ["a/b"] * 20_000}]
            + [{"op": "add", "path": "/metadata/finalizers/0", "value": "a/b"}] * 4_000
        ),
    ),
    "JSON patch that nests": (
        JSON_PATCH,
        lambda: _dumped(
            [{"op": "add", "path": "/a" * (180 * i + 1), "value": _nested(180)} for i in range(20)]
        ),
    ),
    "JSON patch of 20,000 operations": (
        JSON_PATCH,
        lambda: _dumped([{"op": "test", "path": "/kind", "value": "ConfigMap"}] * 20_000),
    ),
    "merge patch of 20,000 keys": (MERGE, lambda: _dumped({"data": _many(20_000, "")})),
    "merge patch of 95,000 keys": (MERGE, lambda: _dumped({"data": _many(95_000, "a value")})),
    "strategic patch of 20,000 keys": (STRATEGIC, lambda: _dumped({"data": _many(20_000, "")})),
    "apply of 20,000 keys": (APPLY, lambda: _dumped(_config_map(data=_many(20_000, "")))),
    "apply of 60,000 keys": (APPLY, lambda: _dumped(_config_map(data=_many(60_000, "value")))),
}


def _nested(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"a": value}
    return value


# -- kinds -------------------------------------------------------------------------------------


def _cron_job(schedule: str) -> Body:
    pod = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}
    template = {"spec": {"template": {"spec": pod}}}
    spec = {"schedule": schedule, "jobTemplate": template}
    obj = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "hostile"}}
    return lambda: _dumped({**obj, "spec": spec})


def _pod(container: Any = None, **spec: Any) -> Body:
    def made() -> bytes:
        containers = [{"name": "c", "image": "i", **(container or {})}]
        obj = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "hostile"}}
        return _dumped({**obj, "spec": {"containers": containers, **spec}})

    return made


_PODS: dict[str, Body] = {
    "a quantity of 1,600 zeros": _pod(
        {"resources": {"limits": {"cpu": "0" * 800 + "." + "0" * 800 + "x"}}}
    ),
    "2,000 quantities of zeros": _pod(
        {"resources": {"limits": {f"example.org/r{i}": "0" * 100 + "x" for i in range(2_000)}}}
    ),
    "3,000 containers": _pod(containers=[{"name": f"c{i}", "image": "i"} for i in range(3_000)]),
    "5,000 equal ports": _pod({"ports": [{"containerPort": 80}] * 5_000}),
    "5,000 devices": _pod(
        {"volumeDevices": [{"name": f"d{i}", "devicePath": f"/d{i}"} for i in range(5_000)]}
    ),
    "3,000 spread constraints": _pod(
        topologySpreadConstraints=[
            {"maxSkew": 1, "topologyKey": f"k{i}", "whenUnsatisfiable": "DoNotSchedule"}
            for i in range(3_000)
        ]
    ),
    "5,000 variables": _pod({"env": [{"name": f"n{i}", "value": "$(n0)"} for i in range(5_000)]}),
    "5,000 tolerations": _pod(tolerations=[{"operator": "Exists", "key": "k"}] * 5_000),
    "3,000 volumes": _pod(volumes=[{"name": f"v{i}", "emptyDir": {}} for i in range(3_000)]),
    "a field reference of brackets": _pod(
        {"env": [{"name": "n", "valueFrom": {"fieldRef": {"fieldPath": "['" * 30_000}}}]}
    ),
    "an image of 200 KB": _pod({"image": "a-" * 100_000}),
}
_KINDS: dict[str, tuple[str, Body]] = {
    "CronJob @every 000... (review)": (
        f"{BATCH}/cronjobs",
        _cron_job("@every " + "0" * 16_000 + "x"),
    ),
    "CronJob of 100,000 parts": (
        f"{BATCH}/cronjobs",
        _cron_job("*," * 100_000 + " * * * *"),
    ),
    "ResourceQuota of scopes and amounts": (
        f"{NAMESPACE}/resourcequotas",
        lambda: _dumped(
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"name": "hostile"},
                "spec": {
                    "scopes": ["BestEffort"] * 3_000,
                    "hard": {f"count/r{i}.example.org": "1" for i in range(3_000)},
                },
            }
        ),
    ),
    "Service of 5,000 ports": (
        f"{NAMESPACE}/services",
        lambda: _dumped(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": "hostile"},
                "spec": {"ports": [{"name": f"p{i}", "port": i + 1} for i in range(5_000)]},
            }
        ),
    ),
    "NetworkPolicy of 10,000 blocks": (
        f"{NETWORK}/networkpolicies",
        lambda: _dumped(
            {
                "apiVersion": "networking.k8s.io/v1",
                "kind": "NetworkPolicy",
                "metadata": {"name": "hostile"},
                "spec": {
                    "podSelector": {},
                    "ingress": [
                        {"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}]}
                    ]
                    * 10_000,
                },
            }
        ),
    ),
    "a protobuf of small fields": (
        MAPS,
        lambda: b"k8s\x00\x0a\x0d\x0a\x02v1\x12\x09ConfigMap" + b"\x12\x02\x0a\x00" * 60_000,
    ),
}


# -- roles, definitions, custom objects --------------------------------------------------------


def _role(rules: Any, **more: Any) -> bytes:
    return _dumped(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "hostile"},
            "rules": rules,
            **more,
        }
    )


def _words(count: int, prefix: str = "w") -> list[str]:
    return [f"{prefix}{i}" for i in range(count)]


def definition(
    schema: Any, versions: int = 1, name: str = "hostiles", **version: Any
) -> dict[str, Any]:
    """Return a CustomResourceDefinition in the group example.org."""
    kind = name.capitalize()[:-1]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{name}.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"plural": name, "kind": kind},
            "versions": [
                {
                    "name": f"v{i + 1}",
                    "served": True,
                    "storage": i == 0,
                    "schema": {"openAPIV3Schema": schema},
                    **version,
                }
                for i in range(versions)
            ],
        },
    }


def _object(properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


_TEXT = {"type": "string"}
# What custom objects are made of: every rule that looks at more than one value.
THINGS_SCHEMA = _object(
    {
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": _TEXT},
        "map": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {**_object({"name": _TEXT}), "required": ["name"]},
        },
        "pattern": {"type": "string", "pattern": "^(a|b|ab)*c$"},
        "texts": {"type": "array", "items": {"type": "string", "pattern": "^[a-z]+$"}},
        "choice": {
            "type": "array",
            "items": {"type": "string", "anyOf": [{"pattern": f"^a{i}"} for i in range(20)]},
        },
        "numbers": {
            "type": "array",
            "maxItems": 1000,
            "items": {"type": "integer"},
            "x-kubernetes-validations": [
                {"rule": "self.all(x, self.exists(y, y >= x))", "message": "no"}
            ],
        },
    }
)


def _thing(**members: Any) -> Body:
    head = {"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "hostile"}}
    return lambda: _dumped({**head, **members})


_ROLES: dict[str, Body] = {
    "a role of 10^9 rights": lambda: _role(
        [{"verbs": _words(1000), "apiGroups": _words(1000), "resources": _words(1000)}]
    ),
    "a role of 3,000 rules": lambda: _role(
        [{"verbs": ["get"], "apiGroups": [f"g{i}"], "resources": ["r"]} for i in range(3_000)]
    ),
    "a role of 12,000 rules": lambda: _role(
        [{"verbs": ["get"], "apiGroups": [f"g{i}"], "resources": ["r"]} for i in range(12_000)]
    ),
    "a role that gathers by 8,000 selectors": lambda: _role(
        [],
        aggregationRule={
            "clusterRoleSelectors": [{"matchLabels": {"a": word}} for word in _words(8_000)]
        },
    ),
    "a role of 100 by 100 names": lambda: _role(
        [
            {
                "verbs": _words(100),
                "apiGroups": _words(100),
                "resources": _words(100),
                "resourceNames": _words(100),
            }
        ]
    ),
}
_BINDINGS: dict[str, Body] = {
    "a binding of 9,000 subjects": lambda: _binding(9_000),
    "a binding of 30,000 subjects": lambda: _binding(30_000),
}


def _binding(count: int) -> bytes:
    return _dumped(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "hostile"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "cluster-admin",
            },
            "subjects": [{"kind": "User", "name": word} for word in _words(count)],
        }
    )


_DEFINITIONS: dict[str, Body] = {
    "1,500 properties": lambda: _dumped(definition(_object(_many(1_500, _TEXT)))),
    "30,000 properties": lambda: _dumped(definition(_object(_many(30_000, _TEXT)))),
    "a schema 90 levels deep": lambda: _dumped(definition(_deep_schema(90))),
    "a pattern of 120,000 instructions": lambda: _dumped(
        definition(_object({"a": {"type": "string", "pattern": r"\pL{1,100}"}}))
    ),
    "300 such patterns": lambda: _dumped(
        definition(
            _object({f"p{i}": {"type": "string", "pattern": rf"\pL{{1,9}}{i}"} for i in range(300)})
        )
    ),
    "500 versions": lambda: _dumped(definition(_object({"a": _TEXT}), 500)),
    "2,000 columns": lambda: _dumped(
        definition(
            _object({"a": _TEXT}),
            additionalPrinterColumns=[
                {"name": f"c{i}", "type": "string", "jsonPath": ".a"} for i in range(2_000)
            ],
        )
    ),
    "an enum of 20,000": lambda: _dumped(
        definition(_object({"a": {"type": "string", "enum": _words(20_000)}}))
    ),
    "a default of 10,000": lambda: _dumped(
        definition(
            _object(
                {"a": {"type": "object", "additionalProperties": _TEXT, "default": _many(10_000)}}
            )
        )
    ),
    "200 rules": lambda: _dumped(
        definition(
            _object(
                {
                    f"p{i}": {
                        "type": "integer",
                        "x-kubernetes-validations": [{"rule": f"self > {i}"}],
                    }
                    for i in range(200)
                }
            )
        )
    ),
    "a reference to itself": lambda: _dumped(definition({"$ref": "#/definitions/x"})),
    "a rule of 2 KB": lambda: _dumped(
        definition(
            _object(
                {
                    "a": {
                        "type": "integer",
                        "x-kubernetes-validations": [{"rule": "(" * 1000 + "true" + ")" * 1000}],
                    }
                }
            )
        )
    ),
}
_OBJECTS: dict[str, Body] = {
    "a set of 20,000": _thing(set=_words(20_000)),
    "a set of equals": _thing(set=["a"] * 40_000),
    "a list-map of 10,000": _thing(map=[{"name": n} for n in _words(10_000)]),
    "a list-map of equals": _thing(map=[{"name": "a"}] * 15_000),
    "a list-map of 30,000": _thing(map=[{"name": n} for n in _words(30_000)]),
    "anything, 200 lists of 50 maps": _thing(
        any={n: [{"name": m} for m in _words(50)] for n in _words(200)}
    ),
    "anything, 25,000 keys": _thing(any=_many(25_000, 1)),
    "a text for a pattern": _thing(pattern="ab" * 100_000 + "x"),
    "20,000 texts that do not match": _thing(texts=["A"] * 20_000),
    "2,000 choices of 20": _thing(choice=["z"] * 2_000),
    "anything, 80,000 values": _thing(any={"x": [{}] * 40_000}),
    "anything, nested 190 levels": _thing(any=_nested(190)),
    "a rule over pairs of 1,000": _thing(numbers=list(range(1000))),
}


def _deep_schema(depth: int) -> Any:
    schema: Any = _TEXT
    for _ in range(depth):
        schema = _object({"a": schema})
    return schema


# -- reads -------------------------------------------------------------------------------------

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_READS: dict[str, tuple[str, str]] = {
    "a label selector of 60 KB": (
        f"{MAPS}?labelSelector=" + "%2C".join(f"!a{i}" for i in range(6_000)), "",
    ),
    "a label selector of 5,000 values": (
        f"{MAPS}?labelSelector=a%20in%20(" + "%2C".join(f"v{i}" for i in range(5_000)) + ")", "",
    ),
    "a field selector of 60 KB": (
        f"{MAPS}?fieldSelector=" + "%2C".join(f"metadata.name!%3Da{i}" for i in range(2_000)), "",
    ),
    "a query of 60 KB": (f"{MAPS}?" + "&".join(f"a{i}=b" for i in range(7_000)), ""),
    "a path of 60 KB": (f"{MAPS}/" + "a" * 60_000, ""),
    "a version of 5,000 digits": (f"{MAPS}?resourceVersion=" + "9" * 5_000, ""),
    "a continue token": (f"{MAPS}?continue=" + "e30" * 10_000, ""),
    "large objects as YAML": (MAPS, YAML),
    "large objects as a Table": (MAPS, TABLE),
    "a large object as YAML": (f"{MAPS}/large", YAML),
    "OpenAPI of all definitions": ("/openapi/v2", "application/json"),
    "OpenAPI as protobuf": (
        "/openapi/v2", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    ),
}  # fmt: skip


def _batch() -> bytes:
    part = {"apiVersion": "v1", "kind": "ConfigMap", "data": _many(300)}
    requests = [
        {"method": "POST", "path": MAPS, "body": {**part, "metadata": {"generateName": "b-"}}}
        for _ in range(100)
    ]
    return _dumped({"requests": requests})


def _attacks() -> Iterator[Attack]:
    for name, body in _YAML.items():
        yield Attack("YAML", name, "POST", MAPS, YAML, body)
    yield Attack("YAML", "apply: aliases", "PATCH", f"{MAPS}/a?fieldManager=m", APPLY,
                 lambda: _alias_bomb(9))  # fmt: skip
    for name, body in _JSON.items():
        yield Attack("JSON", name, "POST", MAPS, JSON, body)
    strict = f"{MAPS}?fieldValidation=Strict"
    twice, many = _JSON["30,000 keys given twice"], _JSON["20,000 keys"]
    yield Attack("JSON", "keys given twice, strictly", "POST", strict, JSON, twice)
    yield Attack("JSON", "replaced by 20,000 keys", "PUT", f"{MAPS}/hostile", JSON, many)
    for name, (media, body) in _PATCHES.items():
        query = "?fieldManager=m&force=true" if media == APPLY else ""
        yield Attack("patch", name, "PATCH", f"{MAPS}/hostile{query}", media, body)
    for name, body in _PODS.items():
        yield Attack("kind", f"Pod: {name}", "POST", f"{NAMESPACE}/pods", JSON, body, "plain")
    for name, (path, body) in _KINDS.items():
        media = PROTOBUF if "protobuf" in name else JSON
        yield Attack("kind", name, "POST", path, media, body, "plain")
    for name, body in (_ROLES | _BINDINGS).items():
        path = f"{RBAC}/clusterrolebindings" if name in _BINDINGS else f"{RBAC}/clusterroles"
        yield Attack("role", name, "POST", path, JSON, body)
    for name, body in _DEFINITIONS.items():
        yield Attack("definition", name, "POST", CRDS, JSON, body)
    for name, body in _OBJECTS.items():
        yield Attack("custom object", name, "POST", THINGS, JSON, body)
    for name, (path, accept) in _READS.items():
        yield Attack("read", name, "GET", path, accept=accept)
    yield Attack("batch", "100 objects of 300 keys", "POST", "/extensions/v1/batch",
                 JSON, _batch)  # fmt: skip


ATTACKS: tuple[Attack, ...] = tuple(_attacks())
