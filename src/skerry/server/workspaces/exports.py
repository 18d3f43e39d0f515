"""Exports and bindings: in force when the write that makes them returns."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping

from skerry.api.errors import FieldError, Forbidden, Invalid, MethodNotAllowed
from skerry.api.keys import ObjectKey
from skerry.api.objects import Object
from skerry.api.refs import PATH_ANNOTATION
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.kit.timestamps import rfc3339
from skerry.logic.machinery.conditions import condition_of, dated
from skerry.logic.machinery.workspaces.bindings import (
    EXPORT_LABEL,
    FINALIZER,
    agreed_spec,
    binding_labels,
    bound_status,
    is_pinned_elsewhere,
)
from skerry.logic.machinery.workspaces.names import SYSTEM_ADMIN
from skerry.server.access import Attributes, Authorizer
from skerry.server.admission.definitions import TERMINATING
from skerry.server.admission.operation import Operation
from skerry.server.codec import decode
from skerry.server.security.authentication import ANONYMOUS
from skerry.server.security.authorization import MASTERS
from skerry.server.seeding import Seeder
from skerry.server.user import User
from skerry.server.workspaces.catalogue import HubCatalogue
from skerry.server.workspaces.state import APIS, HubState
from skerry.store.base import Store, Write

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


def identity_hash(key: bytes) -> str:
    """Return the identity a key makes."""
    return hashlib.sha256(key).hexdigest()


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


async def identity_key(store: Store, cluster: str, export: Object) -> bytes | None:
    """Return the key in the Secret an export names; None without Secret, empty without key."""
    reference = _secret_of(export)
    namespace, name = reference.get("namespace", ""), reference.get("name", "")
    if not namespace or not name:
        return None
    entry = await store.get(ObjectKey("", "secrets", cluster, namespace, name).path())
    if entry is None:
        return None
    held = (decode(entry.value, entry.revision).get("data") or {}).get("key")
    return base64.b64decode(held or "")


def verify_identity(export: Object, key: bytes | None, now: str) -> None:
    """Write into an export's status whether its Secret is what its identity was made of.

    The first key makes the identity; it never changes after that, since objects are stored by it.
    """
    status = export["status"]
    found = identity_hash(key) if key else ""
    known = status.get("identityHash") or found
    condition: Object = {"status": "True", "type": "IdentityValid"}
    if not found:
        named = _secret_of(export)
        where = f"{named.get('namespace', '')}/{named.get('name', '')}"
        missing = f'secrets "{named.get("name", "")}" not found'
        condition |= _unverified(missing if key is None else f"secret {where} is missing data.key")
    elif found != known:
        text = f'identity secret hash "{found}" must match status.identityHash "{known}"'
        condition |= _unverified(f"hash mismatch: {text}")
    old = condition_of(status["conditions"], "IdentityValid")
    others = [c for c in status["conditions"] if c["type"] != "IdentityValid"]
    status["conditions"] = [dated(condition, old, now), *others]
    if known:
        status["identityHash"] = known
    else:
        status.pop("identityHash", None)


def _unverified(message: str) -> Object:
    return {
        "status": "False",
        "severity": "Error",
        "reason": "IdentityVerificationFailed",
        "message": message,
    }


def _secret_of(export: Object) -> Object:
    identity = (export.get("spec") or {}).get("identity") or {}
    found: Object = identity.get("secretRef") or {}
    return found


def refuse_claims(operation: Operation, kind: str) -> None:
    """Refuse claims that do not say which objects they mean, in the words of kcp's schema.

    Said here and not in the schema, whose rules would be the only ones a hub has to compile.
    """
    errors = []
    for index, claim in enumerate((operation.obj.get("spec") or {}).get("permissionClaims") or ()):
        path = f"spec.permissionClaims[{index}]"
        named = (claim.get("group"), claim.get("resource"))
        if bool(claim.get("all")) == bool(claim.get("resourceSelector")):
            detail = 'either "all" or "resourceSelector" must be set'
            errors.append(FieldError.invalid(path, "object", detail))
        if named == ("core.kcp.io", "logicalclusters") and not claim.get("identityHash"):
            detail = "logicalclusters cannot be claimed"
            errors.append(FieldError.invalid(path, "object", detail))
        if not named[1]:
            # It is refused for that, with everything else that is not of its form.
            return
    if errors:
        raise Invalid.of(APIS, kind, operation.obj["metadata"].get("name", ""), errors)


def may_bind(authorizer: Authorizer, user: User, cluster: str, name: str) -> bool:
    """Tell whether *user* may bind the export *name* of *cluster*, as that cluster sees them."""
    asked = Attributes(
        cluster=cluster,
        verb="bind",
        group=APIS,
        version="v1alpha1",
        resource="apiexports",
        name=name,
        deep=True,
    )
    return bool(cluster) and authorizer.authorize(user, asked).allowed


class ExportRules:
    """Gives exports their identity."""

    def __init__(
        self,
        state: HubState,
        catalogue: HubCatalogue,
        seeder: Seeder,
        store: Store,
        clock: Clock,
        ids: IdSource,
        *,
        base_url: Callable[[], str],
        namespaces: Callable[[str], Mapping[str, Object]],
    ) -> None:
        self._state = state
        self._catalogue = catalogue
        self._seeder = seeder
        self._store = store
        self._clock = clock
        self._ids = ids
        self._base_url = base_url
        self._namespaces = namespaces

    async def admit(self, operation: Operation) -> None:
        if operation.type == (APIS, "apiexports") and operation.verb != "DELETE":
            await self._export(operation)

    async def _export(self, operation: Operation) -> None:
        obj, cluster = operation.obj, operation.call.info.cluster
        annotations = obj["metadata"].setdefault("annotations", {})
        annotations[PATH_ANNOTATION] = self._state.path_of(cluster)
        if operation.subresource == "status":
            if MASTERS not in operation.call.user.groups:
                raise self._refused(operation, "status is the server's to write")
            return
        refuse_claims(operation, "APIExport")
        self._check_claims(operation)
        old = operation.old
        if old is None:
            await self._identify(operation, cluster)
        elif _secret_of(obj) != _secret_of(old):
            key = await identity_key(self._store, cluster, obj)
            verify_identity(obj, key, rfc3339(self._clock.now()))

    def _check_claims(self, operation: Operation) -> None:
        """Refuse claims of types that could be anybody's: those need an identity hash."""
        served = self._catalogue.types(SYSTEM_ADMIN).resources
        plain = {r.info.group_resource for r in served if not r.identity}
        claims = (operation.obj.get("spec") or {}).get("permissionClaims") or ()
        for index, claim in enumerate(claims):
            group, resource = claim.get("group", ""), claim.get("resource")
            known = not resource or group == APIS or (group, resource) in plain
            if known or claim.get("identityHash"):
                continue
            path = f"spec.permissionClaims[{index}].identityHash"
            detail = "identityHash is required for API types that are not built-in"
            raise self._refused(operation, str(FieldError.invalid(path, "", detail)))

    async def _identify(self, operation: Operation, cluster: str) -> None:
        """Give a new export the identity of the Secret it names, or of one of its own.

        The Secret of an export that was deleted serves the next of its name: so its objects,
        wherever they are, are not lost.
        """
        obj, now = operation.obj, rfc3339(self._clock.now())
        name = obj["metadata"]["name"]
        spec = obj.setdefault("spec", {})
        own = not _secret_of(obj)
        if own:
            spec["identity"] = {"secretRef": {"name": name, "namespace": IDENTITY_NAMESPACE}}
        key = await identity_key(self._store, cluster, obj)
        if not key and own:
            made = self._ids.bytes(32).hex()
            self._write_identity(operation, cluster, name, made)
            key = made.encode()
        obj["status"] = export_status(name, cluster, "", self._base_url(), now)
        verify_identity(obj, key, now)

    def _write_identity(self, operation: Operation, cluster: str, name: str, key: str) -> None:
        types = self._catalogue.types(SYSTEM_ADMIN)
        for obj in identity_secret(name, key):
            if obj["kind"] == "Namespace" and obj["metadata"]["name"] in self._namespaces(cluster):
                continue
            write = self._seeder.born(types, cluster, obj)
            # One without a key in it makes way.
            operation.writes.append(Write(write.key, write.value))

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
        if operation.verb == "CREATE" and operation.call.resource.identity:
            self._refuse_terminating(operation)
        if operation.type != (APIS, "apibindings") or operation.verb == "DELETE":
            return
        if operation.subresource == "status":
            if MASTERS not in operation.call.user.groups:
                raise self._refused(operation, "status is the server's to write")
            return
        old = operation.old
        if old is not None and export_reference(old) != export_reference(operation.obj):
            detail = "APIExport reference must not be changed"
            error = FieldError.invalid("spec.reference", "object", detail)
            name = operation.obj["metadata"]["name"]
            raise Invalid.of(APIS, "APIBinding", name, [error])
        if operation.call.view:
            self._check_consent(operation)
        if "deletionTimestamp" not in operation.obj["metadata"]:
            refuse_claims(operation, "APIBinding")
            self._bind(operation)

    def _refuse_terminating(self, operation: Operation) -> None:
        """Refuse new objects of a type whose objects are being removed with its binding.

        Views serve the type of all workspaces at once, so it is looked up for the one at hand.
        """
        asked = (*operation.type, operation.call.resource.identity)
        for each in self._state.terminating_types(operation.call.info.cluster):
            if (each.group, each.resource, each.identity) == asked:
                raise MethodNotAllowed(TERMINATING)

    def _check_consent(self, operation: Operation) -> None:
        """Refuse an exporter who writes bindings by a claim and would accept further claims.

        Else whoever may write bindings could agree, for the workspace, to be shown everything.
        """
        known = _accepted(operation.old or {})
        if any(claim not in known for claim in _accepted(operation.obj)):
            why = "permission claims are accepted in the workspace itself, not through a view"
            raise self._refused(operation, why)

    def _bind(self, operation: Operation) -> None:
        obj, cluster = operation.obj, operation.call.info.cluster
        reference = export_reference(obj)
        path, name = reference.get("path", ""), reference.get("name", "")
        export = self._state.export(path, name, cluster)
        if operation.verb == "CREATE":
            # Which export it is pinned to is the server's to say.
            (obj["metadata"].get("labels") or {}).pop(EXPORT_LABEL, None)
            self._check_bind(operation, path, name, export.cluster if export else "")
            metadata = obj["metadata"]
            if FINALIZER not in metadata.setdefault("finalizers", []):
                metadata["finalizers"].append(FINALIZER)
        elif export is not None and is_pinned_elsewhere(obj, export.cluster, name):
            # Its path leads to another workspace by now, which is to be bound anew.
            export = None
        if not path:
            # One beside the binding may still have to come; it can be no other.
            obj["metadata"].setdefault("labels", {}).update(binding_labels(cluster, name))
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
        obj["status"] = bound_status(export, taken, agreed_spec(obj), old, now, cluster)

    def _check_bind(self, operation: Operation, path: str, name: str, cluster: str) -> None:
        """Refuse who may not bind the export; one beside the binding may still have to come."""
        where = cluster or ("" if path else operation.call.info.cluster)
        call = operation.call
        # Through a view kcp binds as nobody in particular, and providers grant that.
        binders = (call.user, ANONYMOUS) if call.view else (call.user,)
        if not any(may_bind(self._authorizer, user, where, name) for user in binders):
            named = f"{path}:{name}" if path else name
            why = f"unable to create APIBinding: no permission to bind to export {named}"
            raise self._refused(operation, why)

    def _refused(self, operation: Operation, why: str) -> Forbidden:
        name = operation.obj["metadata"].get("name", "")
        return Forbidden.of(APIS, "apibindings", name, why)


def _accepted(obj: Object) -> list[Object]:
    claims = (obj.get("spec") or {}).get("permissionClaims") or ()
    return [claim for claim in claims if claim.get("state") == "Accepted"]


def export_reference(obj: Object) -> Object:
    """Return which export a binding names; nothing where it names none."""
    found: Object = ((obj.get("spec") or {}).get("reference") or {}).get("export") or {}
    return found
