"""Schemas that exports offer: valid from the start, since they never change, and kept while bound.

An APIResourceSchema is judged as the CustomResourceDefinition it amounts to: what would not be
served there is refused here, so that no binding ever meets a schema it cannot use.
"""

from __future__ import annotations

from skerry.api.keys import ObjectKey
from skerry.api.objects import Object
from skerry.api.refs import CLUSTER_ANNOTATION
from skerry.logic.machinery.workspaces.names import ROOT
from skerry.server.admission.operation import Operation
from skerry.server.codec import encode
from skerry.server.offload.offload import Offload
from skerry.server.workspaces.state import APIS, KEPT_CONVERSION, KEPT_SCHEMAS, HubState
from skerry.store.base import Write

_DEFINITIONS = ("apiextensions.k8s.io", "customresourcedefinitions")


def kept_schema(state: HubState, schema: Object) -> Write | None:
    """Return the write that keeps a schema about to be deleted, if anybody binds it.

    How its versions are converted is kept with it: objects of it stay as they are stored.
    """
    metadata = schema["metadata"]
    if not state.uses(metadata["uid"]):
        return None
    cluster = (metadata.get("annotations") or {}).get(CLUSTER_ANNOTATION, "")
    conversion = state.conversions.get((cluster, metadata["name"]))
    kept = schema if conversion is None else {**schema, KEPT_CONVERSION: conversion}
    return Write(ObjectKey(*KEPT_SCHEMAS, ROOT, "", metadata["uid"]).path(), encode(kept))


class SchemaRules:
    """Judges schemas and their conversions, and keeps the system's group from definitions."""

    def __init__(self, state: HubState, offload: Offload) -> None:
        self._state = state
        self._offload = offload

    async def admit(self, operation: Operation) -> None:
        if operation.type == (APIS, "apiresourceschemas"):
            await self._schema(operation)
        elif operation.verb == "DELETE":
            return
        elif operation.type == (APIS, "apiconversions"):
            await self._conversion(operation)
        elif operation.type == _DEFINITIONS:
            _definition(operation)

    async def _schema(self, operation: Operation) -> None:
        obj = operation.obj
        if operation.verb == "DELETE":
            write = kept_schema(self._state, obj)
            if write is not None and not operation.dry_run:
                operation.writes.append(write)
        elif operation.old is not None:
            if obj.get("spec") != operation.old.get("spec"):
                raise operation.forbidden("spec: Invalid value: is immutable")
        elif why := await self._offload.check(operation.call, "schema", obj):
            raise operation.forbidden(why)

    async def _conversion(self, operation: Operation) -> None:
        """Refuse a conversion of no schema, or one that makes no sense for it."""
        name = operation.obj["metadata"]["name"]
        schema = self._state.schemas.get((operation.call.info.cluster, name))
        if schema is None:
            why = f'apiresourceschema.apis.kcp.io "{name}" not found'
            raise operation.forbidden(f"error getting APIResourceSchema {name}: {why}")
        why = await self._offload.check(operation.call, "conversion", schema, operation.obj)
        if why:
            raise operation.forbidden(why)


def _definition(operation: Operation) -> None:
    group = str((operation.obj.get("spec") or {}).get("group", ""))
    if group.endswith(APIS):
        raise operation.forbidden(f"{group} is a reserved group")
    annotations = operation.obj["metadata"].get("annotations") or {}
    reserved = [f"{key} is a reserved annotation" for key in sorted(annotations) if _reserved(key)]
    if reserved and not operation.call.info.cluster.startswith("system:"):
        raise operation.forbidden(reserved[0] if len(reserved) == 1 else f"[{', '.join(reserved)}]")


def _reserved(annotation: str) -> bool:
    """Tell whether *annotation* is one by which definitions that come from bindings are known."""
    return f".{annotation.partition('/')[0]}".endswith(f".{APIS}")
