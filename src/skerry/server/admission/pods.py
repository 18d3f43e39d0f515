"""What every pod gets from its surroundings: account, priority, tolerations."""

from __future__ import annotations

from typing import Any, ClassVar

from skerry.api.errors import Forbidden
from skerry.api.keys import ObjectKey
from skerry.api.objects import Object
from skerry.logic.machinery.builtin.known_specs import token_volume_name
from skerry.server.admission.operation import Operation
from skerry.server.codec import decode
from skerry.server.observed import ObservedObjects
from skerry.store.base import Store

_TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a path, no secret
_TOKEN_SECONDS = 3607
_EVICTION_SECONDS = 300
_PREEMPTS = "PreemptLowerPriority"
_SYSTEM_PRIORITIES = {"system-cluster-critical": 2000000000, "system-node-critical": 2000001000}


def _creates_pod(operation: Operation) -> bool:
    return operation.verb == "CREATE" and operation.type == ("", "pods")


def _updates_pod(operation: Operation) -> bool:
    """Tell whether a pod itself is written anew, perhaps by somebody who knows no defaults."""
    return (
        operation.verb == "UPDATE" and operation.type == ("", "pods") and not operation.subresource
    )


class ServiceAccountAdmission:
    """Runs each pod under a service account and mounts that account's token."""

    TYPES: ClassVar = frozenset({("", "pods")})

    def __init__(self, store: Store) -> None:
        self._store = store

    async def admit(self, operation: Operation) -> None:
        if not _creates_pod(operation):
            return
        spec = operation.obj["spec"]
        if "kubernetes.io/config.mirror" in (operation.obj["metadata"].get("annotations") or {}):
            return
        name = spec.setdefault("serviceAccountName", "default")
        spec["serviceAccount"] = name
        call = operation.call
        key = ObjectKey("", "serviceaccounts", call.info.cluster, call.namespace, name)
        entry = await self._store.get(key.path())
        if entry is None:
            raise _forbidden(
                operation,
                f"error looking up service account {call.namespace}/{name}: serviceaccount "
                f'"{name}" not found',
            )
        account = decode(entry.value, entry.revision)
        if spec.get("imagePullSecrets") in (None, []) and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = account["imagePullSecrets"]
        mounts = spec.get("automountServiceAccountToken")
        if mounts is None:
            mounts = account.get("automountServiceAccountToken", True)
        if mounts:
            self._mount_token(operation, spec)

    def _mount_token(self, operation: Operation, spec: dict[str, Any]) -> None:
        containers = [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]
        lacking = [
            container
            for container in containers
            if all(m.get("mountPath") != _TOKEN_PATH for m in container.get("volumeMounts") or [])
        ]
        if not lacking:
            return
        name = token_volume_name(operation.obj["metadata"]["uid"])
        for container in lacking:
            container.setdefault("volumeMounts", []).append(
                {"name": name, "readOnly": True, "mountPath": _TOKEN_PATH}
            )
        volumes = spec.setdefault("volumes", [])
        # A container that came after the first look is given the same volume.
        if all(volume.get("name") != name for volume in volumes):
            volumes.append(_token_volume(name))


def _token_volume(name: str) -> dict[str, Any]:
    namespace = {
        "path": "namespace",
        "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
    }
    authority = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    token = {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}
    return {
        "name": name,
        "projected": {
            "defaultMode": 0o644,
            "sources": [
                {"serviceAccountToken": token},
                {"configMap": authority},
                {"downwardAPI": {"items": [namespace]}},
            ],
        },
    }


class PriorityAdmission:
    """Resolves a pod's priority class to its number; nobody takes another than that."""

    TYPES: ClassVar = frozenset({("", "pods")})

    def __init__(self, classes: ObservedObjects, store: Store) -> None:
        self._classes = classes
        self._store = store

    async def admit(self, operation: Operation) -> None:
        if _updates_pod(operation):
            _keep_priority(operation)
        if not _creates_pod(operation):
            return
        spec = operation.obj["spec"]
        if spec.get("priorityClassName"):
            found = await self._named(operation, spec["priorityClassName"])
        else:
            found = self._default(operation)
            if found:
                spec["priorityClassName"] = found["metadata"]["name"]
        value, policy = found.get("value", 0), found.get("preemptionPolicy") or _PREEMPTS
        _set_computed(operation, "priority", "the integer value of priority", value)
        _set_computed(operation, "preemptionPolicy", "the string value of PreemptionPolicy", policy)

    async def _named(self, operation: Operation, name: str) -> Object:
        found = await self._classes.find(self._store, operation.call.info.cluster, name)
        if found is not None:
            return found
        if name not in _SYSTEM_PRIORITIES:
            raise _forbidden(operation, f"no PriorityClass with name {name} was found")
        return {"value": _SYSTEM_PRIORITIES[name]}

    def _default(self, operation: Operation) -> Object:
        classes = self._classes.within(operation.call.info.cluster).values()
        default = [each for each in classes if each.get("globalDefault")]
        return min(default, key=lambda each: int(each["value"])) if default else {}


def _set_computed(operation: Operation, field: str, said: str, computed: int | str) -> None:
    """Set what follows from a pod's class; refuse a pod that says something else."""
    spec = operation.obj["spec"]
    given = spec.get(field)
    if given is not None and given != computed:
        raise _forbidden(
            operation,
            f"{said} ({given}) must not be provided in pod spec; priority admission controller "
            f"computed {computed} from the given PriorityClass name",
        )
    spec[field] = computed


def _forbidden(operation: Operation, why: str) -> Forbidden:
    return Forbidden.of("", "pods", operation.obj["metadata"].get("name", ""), why)


def _keep_priority(operation: Operation) -> None:
    """Fill in what was resolved when the pod was made, where an update leaves it out."""
    before = (operation.old or {}).get("spec") or {}
    spec = operation.obj["spec"]
    for name in ("priority", "preemptionPolicy"):
        if spec.get(name) is None and before.get(name) is not None:
            spec[name] = before[name]


class DefaultTolerations:
    """Lets a pod stay five minutes on a node that went away, unless it says otherwise."""

    TYPES: ClassVar = frozenset({("", "pods")})

    async def admit(self, operation: Operation) -> None:
        if not _creates_pod(operation) and not _updates_pod(operation):
            return
        tolerations = operation.obj["spec"].setdefault("tolerations", [])
        for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
            if not any(_covers(toleration, key) for toleration in tolerations):
                tolerations.append(
                    {
                        "key": key,
                        "operator": "Exists",
                        "effect": "NoExecute",
                        "tolerationSeconds": _EVICTION_SECONDS,
                    }
                )


def _covers(toleration: dict[str, Any], key: str) -> bool:
    return toleration.get("key", "") in ("", key) and toleration.get("effect", "") in (
        "",
        "NoExecute",
    )
