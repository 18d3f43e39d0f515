"""Exports and bindings: in force when the write that makes them returns."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping

from skerry.api.errors import FieldError, Forbidden, Invalid
from skerry.api.keys import ObjectKey
from skerry.kit.clock import Clock, rfc3339
from skerry.kit.ids import IdSource
from skerry.logic.resource import Object
from skerry.logic.workspaces.bindings import (
    FINALIZER,
    binding_labels,
    bound_status,
)
from skerry.logic.workspaces.births import PATH_ANNOTATION
from skerry.logic.workspaces.names import ROOT, SYSTEM_ADMIN
from skerry.logic.workspaces.schemas import conversion_errors
from skerry.server.access import Attributes, Authorizer
from skerry.server.admission.operation import Operation
from skerry.server.codec import encode
from skerry.server.security.authorization import MASTERS
from skerry.server.seeding import Seeder
from skerry.server.workspaces.catalogue import HubCatalogue
from skerry.server.workspaces.state import APIS, KEPT_SCHEMAS, HubState
from skerry.store.base import Write

IDENTITY_NAMESPACE = "kcp-system"
EXTRA = "extra.apis.kcp.io/"


def identity_secret(export: str, key: str) -> list[Object]:
    """Return the Secret that makes an export's identity, and its namespace."""
    encoded = base64.b64encode(key.encode()).decode()
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": IDENTITY_NAMESPACE}},
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": export, "namespace": IDENTITY_NAMESPACE},
            "type": "Opaque",
            "data": {"key": encoded},
        },
    ]


def identity_hash(key: str) -> str:
    """Return the identity a key makes."""
    return hashlib.sha256(key.encode()).hexdigest()


def export_status(name: str, cluster: str, identity: str, base_url: str, now: str) -> Object:
    """Return the status of an export that is in order."""
    return {
        "conditions": [
            {"lastTransitionTime": now, "status": "True", "type": kind}
            for kind in ("IdentityValid", "VirtualWorkspaceURLsReady")
        ],
        "identityHash": identity,
        "virtualWorkspaces": [{"url": f"{base_url}/services/apiexport/{cluster}/{name}"}],
    }


def kept_schema(state: HubState, schema: Object) -> Write | None:
    """Return the write that keeps a schema about to be deleted, if anybody binds it."""
    uid = schema["metadata"]["uid"]
    if not state.uses(uid):
        return None
    return Write(ObjectKey(*KEPT_SCHEMAS, ROOT, "", uid).path(), encode(schema))


class ExportRules:
    """Gives exports their identity and keeps schemas unchanged."""

    def __init__(
        self,
        state: HubState,
        catalogue: HubCatalogue,
        seeder: Seeder,
        clock: Clock,
        ids: IdSource,
        base_url: Callable[[], str],
        namespaces: Callable[[str], Mapping[str, Object]],
    ) -> None:
        self._state = state
        self._catalogue = catalogue
        self._seeder = seeder
        self._clock = clock
        self._ids = ids
        self._base_url = base_url
        self._namespaces = namespaces

    async def admit(self, operation: Operation) -> None:
        if operation.type[0] != APIS:
            return
        resource = operation.type[1]
        if resource == "apiresourceschemas":
            self._schema(operation)
        elif resource == "apiexports":
            self._export(operation)
        elif resource == "apiexportendpointslices":
            self._slice(operation)
        elif resource == "apiconversions" and operation.verb != "DELETE":
            self._conversion(operation)

    def _schema(self, operation: Operation) -> None:
        obj = operation.obj
        if operation.verb == "DELETE":
            write = kept_schema(self._state, obj)
            if write is not None and not operation.dry_run:
                operation.writes.append(write)
            return
        if operation.verb == "UPDATE" and operation.old is not None:
            if obj.get("spec") != operation.old.get("spec"):
                raise self._refused(operation, "spec: Invalid value: is immutable")
            return
        if operation.verb == "CREATE":
            spec = obj.get("spec") or {}
            plural = (spec.get("names") or {}).get("plural", "")
            ending = f".{plural}.{spec.get('group') or 'core'}"
            name = obj["metadata"].get("name", "")
            if not name.endswith(ending) or name == ending:
                raise self._refused(operation, f"metadata.name: must end in {ending}")

    def _conversion(self, operation: Operation) -> None:
        """Refuse a conversion of no schema, or one that makes no sense for it."""
        name = operation.obj["metadata"]["name"]
        schema = self._state.schemas.get((operation.call.info.cluster, name))
        if schema is None:
            why = f'apiresourceschema.apis.kcp.io "{name}" not found'
            raise self._refused(operation, f"error getting APIResourceSchema {name}: {why}")
        errors = conversion_errors(schema, operation.obj)
        if errors:
            told = ", ".join(map(str, errors))
            told = f"[{told}]" if len(errors) > 1 else told
            raise self._refused(operation, f"error compiling conversion rules: {told}")

    def _export(self, operation: Operation) -> None:
        if operation.verb == "DELETE":
            return
        obj, cluster = operation.obj, operation.call.info.cluster
        name = obj["metadata"]["name"]
        annotations = obj["metadata"].setdefault("annotations", {})
        annotations[PATH_ANNOTATION] = self._state.path_of(cluster)
        if operation.subresource == "status":
            if MASTERS not in operation.call.user.groups:
                raise self._refused(operation, "status is the server's to write")
            return
        if operation.verb == "CREATE":
            key = self._ids.bytes(32).hex()
            reference = {"name": name, "namespace": IDENTITY_NAMESPACE}
            obj.setdefault("spec", {})["identity"] = {"secretRef": reference}
            now = rfc3339(self._clock.now())
            obj["status"] = export_status(name, cluster, identity_hash(key), self._base_url(), now)
            self._write_identity(operation, cluster, name, key)

    def _write_identity(self, operation: Operation, cluster: str, name: str, key: str) -> None:
        types = self._catalogue.types(SYSTEM_ADMIN)
        for obj in identity_secret(name, key):
            if obj["kind"] == "Namespace" and obj["metadata"]["name"] in self._namespaces(cluster):
                continue
            write = self._seeder.born(types, cluster, obj)
            # The secret of an export that was deleted makes way for the new one's.
            operation.writes.append(Write(write.key, write.value))

    def _slice(self, operation: Operation) -> None:
        if operation.verb == "DELETE" or operation.subresource:
            return
        cluster, obj = operation.call.info.cluster, operation.obj
        reference = (obj.get("spec") or {}).get("export") or {}
        export = self._state.export(reference.get("path", ""), reference.get("name", ""), cluster)
        now = rfc3339(self._clock.now())
        if export is None:
            raise self._refused(operation, "spec.export: the referenced APIExport does not exist")
        url = f"{self._base_url()}/services/apiexport/{export.cluster}/{export.name}"
        obj["status"] = {
            "conditions": [
                {"lastTransitionTime": now, "status": "True", "type": kind}
                for kind in ("APIExportValid", "EndpointURLsReady", "PartitionValid")
            ],
            "endpoints": [{"url": url}],
        }

    def _refused(self, operation: Operation, why: str) -> Forbidden:
        name = operation.obj["metadata"].get("name", "")
        return Forbidden.of(APIS, operation.type[1], name, why)


class BindingRules:
    """Binds as the binding is written."""

    def __init__(
        self, state: HubState, catalogue: HubCatalogue, authorizer: Authorizer, clock: Clock
    ) -> None:
        self._state = state
        self._catalogue = catalogue
        self._authorizer = authorizer
        self._clock = clock

    async def admit(self, operation: Operation) -> None:
        if operation.type != (APIS, "apibindings") or operation.verb == "DELETE":
            return
        if operation.subresource == "status":
            if MASTERS not in operation.call.user.groups:
                raise self._refused(operation, "status is the server's to write")
            return
        old = operation.old
        if old is not None and _reference(old) != _reference(operation.obj):
            error = FieldError.invalid(
                "spec.reference", _reference(operation.obj), "field is immutable"
            )
            name = operation.obj["metadata"]["name"]
            raise Invalid.of(APIS, "APIBinding", name, [error])
        if "deletionTimestamp" not in operation.obj["metadata"]:
            self._bind(operation)

    def _bind(self, operation: Operation) -> None:
        obj, cluster = operation.obj, operation.call.info.cluster
        reference = _reference(obj)
        path, name = reference.get("path", ""), reference.get("name", "")
        export = self._state.export(path, name, cluster)
        if operation.verb == "CREATE":
            self._check_bind(operation, path, name, export.cluster if export else "")
            metadata = obj["metadata"]
            if FINALIZER not in metadata.setdefault("finalizers", []):
                metadata["finalizers"].append(FINALIZER)
        if export is not None:
            labels = obj["metadata"].setdefault("labels", {})
            labels |= binding_labels(export.cluster, export.name)
            extra = {k: v for k, v in (export.annotations or {}).items() if k.startswith(EXTRA)}
            if extra:
                obj["metadata"].setdefault("annotations", {}).update(extra)
        taken = self._state.taken_names(
            cluster, obj["metadata"].get("name", ""), self._catalogue.definitions(cluster)
        )
        now = rfc3339(self._clock.now())
        old = (operation.old or {}).get("status") or {}
        obj["status"] = bound_status(export, taken, obj.get("spec") or {}, old, now)

    def _check_bind(self, operation: Operation, path: str, name: str, cluster: str) -> None:
        if not path:
            return
        asked = Attributes(
            cluster=cluster,
            verb="bind",
            group=APIS,
            version="v1alpha1",
            resource="apiexports",
            name=name,
        )
        user = operation.call.user
        if not cluster or not self._authorizer.authorize(user, asked).allowed:
            why = f"unable to create APIBinding: no permission to bind to export {path}:{name}"
            raise self._refused(operation, why)

    def _refused(self, operation: Operation, why: str) -> Forbidden:
        name = operation.obj["metadata"].get("name", "")
        return Forbidden.of(APIS, "apibindings", name, why)


def _reference(obj: Object) -> Object:
    found: Object = ((obj.get("spec") or {}).get("reference") or {}).get("export") or {}
    return found
