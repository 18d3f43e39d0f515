"""Workspaces: complete when the create returns.

The create of a Workspace also writes its logical cluster, the objects every workspace begins
with and the bindings its type asks for, in one transaction. Where nobody else has to initialize
it, it is born Ready.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypedDict

from skerry.api.errors import FieldError, Forbidden, Invalid
from skerry.api.kcp.tenancy import WORKSPACE_NAME
from skerry.api.keys import ObjectKey
from skerry.api.objects import Object
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.kit.timestamps import rfc3339
from skerry.logic.machinery.workspaces import workspace_content
from skerry.logic.machinery.workspaces.bindings import (
    FINALIZER,
    Taken,
    binding_labels,
    bound_status,
    taken_by,
)
from skerry.logic.machinery.workspaces.names import SYSTEM_ADMIN, cluster_name
from skerry.logic.machinery.workspaces.types import (
    Resolved,
    TypeName,
    WorkspaceTypeError,
    check_nesting,
    resolve,
)
from skerry.logic.machinery.workspaces.workspace_content import NewWorkspace
from skerry.server.access import Attributes, Authorizer
from skerry.server.admission.operation import Operation
from skerry.server.codec import decode, encode
from skerry.server.security.authorization import MASTERS
from skerry.server.seeding import Seeder
from skerry.server.workspaces.catalogue import HubCatalogue
from skerry.server.workspaces.emptying import mark
from skerry.server.workspaces.exports import may_bind
from skerry.server.workspaces.object_templates import ObjectTemplate, Placeholders
from skerry.server.workspaces.state import CORE, TENANCY, HubState
from skerry.store.base import Store, Write

# Initializers that stand for what this server does itself, in the creating transaction.
_OWN_INITIALIZERS = frozenset({"root:universal", "system:apibindings"})
# Fields of spec that are the server's, and what kcp calls them when refusing a create.
_SERVER_SET = {"cluster": "Cluster", "URL": "URL"}
_NAME = re.compile(WORKSPACE_NAME)


# More kinds of workspaces than this in use at once are not worth the memory.
_TEMPLATES = 64


class Owner(TypedDict):
    """The Workspace a logical cluster belongs to: where it is, its name and its uid."""

    parent: str
    name: str
    owner_uid: str


_NOBODY = Owner(parent="", name="", owner_uid="")


class WorkspaceInitializer:
    """Makes workspaces whole as they are created, and keeps what may not change."""

    def __init__(
        self,
        state: HubState,
        catalogue: HubCatalogue,
        seeder: Seeder,
        authorizer: Authorizer,
        store: Store,
        clock: Clock,
        ids: IdSource,
        *,
        base_url: Callable[[], str],
        root_ca: Callable[[], str],
    ) -> None:
        self._state = state
        self._catalogue = catalogue
        self._seeder = seeder
        self._authorizer = authorizer
        self._store = store
        self._clock = clock
        self._ids = ids
        self._base_url = base_url
        self._root_ca = root_ca
        # By type, owner and kind of workspace; and types found fit for a type of parent.
        self._templates: dict[tuple[str, str, str | None, bool, bool], ObjectTemplate] = {}
        self._nested: dict[tuple[str, TypeName], Resolved] = {}
        self._as_of = (0, 0)

    async def admit(self, operation: Operation) -> None:
        if operation.type != (TENANCY, "workspaces") or operation.subresource == "status":
            return
        if operation.verb == "CREATE":
            self._create(operation)
        elif operation.verb == "DELETE":
            await self._mark_cluster(operation)
        elif operation.old is not None:
            self._update(operation, operation.old)

    def _create(self, operation: Operation) -> None:
        call, workspace = operation.call, operation.obj
        parent = call.info.cluster
        check_name("Workspace", workspace["metadata"].get("name", ""))
        spec = workspace.setdefault("spec", {})
        masters = MASTERS in call.user.groups
        for field, shown in _SERVER_SET.items():
            if spec.get(field) and not masters:
                why = f"spec.{shown} can only be set by system privileged users"
                raise self._forbidden(operation, why)
        resolved = self._resolved(operation, parent, spec)
        self._check_use(operation, resolved)
        self._check_bindings(operation, resolved)
        found = resolved.found
        spec["type"] = {"name": found.type_name.name, "path": found.type_name.path}
        name = workspace["metadata"]["name"]
        # Two random UUIDs: unique is all it must be, and they cost no system call.
        cluster = cluster_name(f"{self._ids.uid()}{self._ids.uid()}".encode())
        new = self.new_workspace(
            resolved,
            cluster,
            self._state.child_path(parent, name),
            "" if masters else call.user.seen_from(cluster).name,
            self._required_groups(parent, workspace, masters=masters),
        )
        labels = workspace["metadata"].setdefault("labels", {})
        for key, value in resolved.labels().items():
            labels.setdefault(key, value)
        workspace_content.complete_workspace(workspace, new)
        owner = Owner(parent=parent, name=name, owner_uid=workspace["metadata"]["uid"])
        operation.writes += self.content(resolved, new, owner)

    async def _mark_cluster(self, operation: Operation) -> None:
        """Mark the logical cluster as being deleted, together with its Workspace.

        From that moment on nothing is created in it any more, whichever server is asked.
        """
        cluster = (operation.obj.get("spec") or {}).get("cluster", "")
        key = ObjectKey(CORE, "logicalclusters", cluster, "", "cluster").path()
        entry = await self._store.get(key) if cluster and not operation.dry_run else None
        labels = operation.obj["metadata"].setdefault("labels", {})
        labels[workspace_content.PHASE_LABEL] = "Deleting"
        if entry is None:
            return
        obj = decode(entry.value, entry.revision)
        if mark(obj, rfc3339(self._clock.now())):
            obj["metadata"].setdefault("labels", {})[workspace_content.PHASE_LABEL] = "Deleting"
            operation.writes.append(Write(key, encode(obj), expected=entry.revision))

    def _required_groups(self, parent: str, workspace: Object, *, masters: bool) -> str | None:
        """Return which groups a new workspace demands: its parent's, unless masters say else."""
        asked = (workspace["metadata"].get("annotations") or {}).get(
            workspace_content.REQUIRED_GROUPS
        )
        if masters and asked is not None:
            return str(asked)
        known = self._state.clusters.get(parent)
        return known.required_groups if known is not None else None

    def new_workspace(
        self,
        resolved: Resolved,
        cluster: str,
        path: str,
        owner: str,
        required_groups: str | None = None,
    ) -> NewWorkspace:
        """Return the creation of a workspace of that type."""
        wanted = [*resolved.initializers(), "system:apibindings"]
        return NewWorkspace(
            cluster=cluster,
            path=path,
            url=self._url(cluster),
            type_name=str(resolved.found.type_name),
            now=rfc3339(self._clock.now()),
            owner=owner,
            initializers=[name for name in wanted if name not in _OWN_INITIALIZERS],
            done=[name for name in wanted if name in _OWN_INITIALIZERS],
            required_groups=required_groups,
        )

    def _url(self, cluster: str) -> str:
        return f"{self._base_url()}/clusters/{cluster}"

    def content(
        self, resolved: Resolved, new: NewWorkspace, owner: Owner | None, *, deletable: bool = False
    ) -> list[Write]:
        """Return the writes that fill a new logical cluster."""
        self._forget_outdated()
        key = (new.type_name, new.owner, new.required_groups, owner is None, deletable)
        template = self._templates.get(key)
        if template is None:
            template = self._templates[key] = self._template(
                resolved, new, owner, deletable=deletable
            )
        return template.render(
            self._ids, cluster=new.cluster, path=new.path, now=new.now, **(owner or _NOBODY)
        )

    def _forget_outdated(self) -> None:
        """Keep nothing that was derived from types and exports as they no longer are."""
        as_of = (self._state.offers, self._state.type_changes)
        if (
            as_of != self._as_of
            or len(self._templates) >= _TEMPLATES
            or len(self._nested) >= _TEMPLATES
        ):
            self._as_of = as_of
            self._templates.clear()
            self._nested.clear()

    def _template(
        self, resolved: Resolved, new: NewWorkspace, owner: Owner | None, *, deletable: bool
    ) -> ObjectTemplate:
        """Return the content of every workspace of that type and owner."""
        placeholders = Placeholders(self._ids, names=len(resolved.default_bindings()))
        new = replace(
            new,
            cluster=placeholders.cluster,
            path=placeholders.path,
            url=self._url(placeholders.cluster),
            now=placeholders.now,
        )
        reference = None if owner is None else _reference(placeholders)
        objects = [
            workspace_content.logical_cluster(new, reference, deletable=deletable),
            *workspace_content.first_objects(new.owner, self._root_ca()),
            *self._bindings(resolved, new, placeholders),
        ]
        types = self._catalogue.types(SYSTEM_ADMIN)
        for obj in objects:
            obj["metadata"]["uid"] = placeholders.uid
        made = [self._seeder.born(types, new.cluster, obj, new.now) for obj in objects]
        return ObjectTemplate(made, placeholders)

    def _bindings(
        self, resolved: Resolved, new: NewWorkspace, placeholders: Placeholders
    ) -> Iterator[Object]:
        """Yield the bindings workspaces of a type begin with; of equal names the first wins."""
        taken: list[Taken] = []
        for (path, name), ending in zip(
            resolved.default_bindings(), placeholders.suffixes, strict=True
        ):
            export = self._state.export(path, name, new.cluster)
            # Also one that has yet to come is that of the workspace which is there now.
            where = self._state.resolve(path)
            spec: Object = {"reference": {"export": {"path": path, "name": name}}}
            claims = export.claims if export is not None else ()
            if claims:
                # Who chose the type has agreed to what its exports ask for.
                spec["permissionClaims"] = [{**claim, "state": "Accepted"} for claim in claims]
            status = bound_status(export, taken, spec, {}, new.now)
            if export is not None and status["phase"] == "Bound":
                taken += taken_by(f"{name}-{ending}", export)
            yield {
                "apiVersion": "apis.kcp.io/v1alpha1",
                "kind": "APIBinding",
                "metadata": {
                    "name": f"{name}-{ending}",
                    "finalizers": [FINALIZER],
                    "labels": binding_labels(where, name) if where else {},
                },
                "spec": spec,
                "status": status,
            }

    def _resolved(self, operation: Operation, parent: str, spec: Object) -> Resolved:
        """Return the type of a new workspace: the one it names, or its parent's default."""
        self._forget_outdated()
        known = self._state.clusters.get(parent)
        parent_type = known.type_name if known is not None else ""
        reference = spec.get("type") or {}
        try:
            wanted = self._named_type(reference, parent) if reference.get("name") else None
            return self._fit(parent_type, wanted or self._default_child(parent_type))
        except WorkspaceTypeError as error:
            raise self._forbidden(operation, str(error)) from error

    def _fit(self, parent_type: str, wanted: TypeName) -> Resolved:
        """Return the type *wanted*, which must be fit for a parent of *parent_type*.

        It is worked out once: who creates many workspaces creates them alike.
        """
        resolved = self._nested.get((parent_type, wanted))
        if resolved is None:
            resolved = resolve(wanted, self._state.workspace_type)
            parent = self._parent_type(parent_type)
            if parent is not None:
                check_nesting(resolved, parent)
            self._nested[(parent_type, wanted)] = resolved
        return resolved

    def _named_type(self, reference: Object, parent: str) -> TypeName:
        name, path = reference["name"], reference.get("path", "")
        if path:
            return TypeName(path, name)
        found = self._state.nearest_type(name, self._state.path_of(parent))
        if found is None:
            raise WorkspaceTypeError(f'workspace type "{name}" cannot be resolved')
        return found

    def _default_child(self, parent_type: str) -> TypeName:
        parent = self._parent_type(parent_type)
        default = parent.default_child() if parent is not None else None
        return default or TypeName("root", "universal")

    def _parent_type(self, name: str) -> Resolved | None:
        """Return the type of a parent; None when it has none, or none that is still there."""
        if not name:
            return None
        path, _, plain = name.rpartition(":")
        try:
            return resolve(TypeName(path, plain), self._state.workspace_type)
        except WorkspaceTypeError:
            return None

    def _check_use(self, operation: Operation, resolved: Resolved) -> None:
        """Refuse who may not use the type and every type it extends."""
        for found in resolved.chain:
            asked = Attributes(
                cluster=found.cluster,
                verb="use",
                group=TENANCY,
                version="v1alpha1",
                resource="workspacetypes",
                name=found.type_name.name,
                deep=True,
            )
            if not self._authorizer.authorize(operation.call.user, asked).allowed:
                why = f"unable to use workspace type {found.type_name}: missing verb='use' "
                raise self._forbidden(operation, f"{why}permission on workspacetype")

    def _check_bindings(self, operation: Operation, resolved: Resolved) -> None:
        """Refuse who may not bind what the type binds for them.

        Who may use a type may bind, by it, what its own workspace exports: that is for that
        workspace to give. Of any other workspace a type gives nothing.
        """
        user = operation.call.user
        for (path, name), offering in resolved.binding_sources().items():
            cluster = self._state.resolve(path) or ""
            if cluster in offering or may_bind(self._authorizer, user, cluster, name):
                continue
            why = f"unable to use workspace type {resolved.found.type_name}: no permission to "
            raise self._forbidden(operation, f"{why}bind to export {path}:{name}")

    def _update(self, operation: Operation, old: Object) -> None:
        new_spec, old_spec = operation.obj.get("spec") or {}, old.get("spec") or {}
        if old_spec.get("cluster") and not new_spec.get("cluster"):
            raise self._forbidden(operation, "spec.cluster cannot be unset")
        if old_spec.get("cluster", new_spec.get("cluster")) != new_spec.get("cluster"):
            raise _invalid(
                operation, FieldError.invalid("spec.cluster", "string", "cluster is immutable")
            )
        for field in _SERVER_SET:
            if new_spec.get(field) != old_spec.get(field) and (
                MASTERS not in operation.call.user.groups
            ):
                why = f"spec.{field} can only be changed by system privileged users"
                raise self._forbidden(operation, why)
        was, now = old_spec.get("type") or {}, new_spec.get("type") or {}
        moved = [field for field in ("name", "path") if was.get(field) != now.get(field)]
        if moved:
            details = (f"{field} is immutable" for field in moved)
            raise _invalid(
                operation, *(FieldError.invalid("spec.type", "object", each) for each in details)
            )

    def _forbidden(self, operation: Operation, why: str) -> Forbidden:
        name = operation.obj["metadata"].get("name", "")
        return Forbidden.of(TENANCY, "workspaces", name, why)


def _reference(placeholders: Placeholders) -> Object:
    """Return what a logical cluster says of the Workspace it belongs to."""
    return {
        "apiVersion": "tenancy.kcp.io/v1alpha1",
        "cluster": placeholders.parent,
        "name": placeholders.name,
        "resource": "workspaces",
        "uid": placeholders.owner_uid,
    }


def check_name(kind: str, name: str) -> None:
    """Raise unless *name* can be one segment of a path."""
    if not _NAME.match(name):
        detail = f"metadata.name in body should match '{WORKSPACE_NAME}'"
        error = FieldError.invalid("metadata.name", name, detail)
        raise Invalid.of(TENANCY, kind, name, [error])


def _invalid(operation: Operation, *errors: FieldError) -> Invalid:
    name = operation.obj["metadata"].get("name", "")
    return Invalid.of(TENANCY, "Workspace", name, list(errors))
