"""Schemas that exports offer: never changed, kept while bound; and names that are the system's."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from skerry.api.errors import Forbidden
from skerry.api.keys import ObjectKey
from skerry.api.objects import Object
from skerry.kit.invariant import present
from skerry.server.admission.operation import Operation, Verb
from skerry.server.codec import decode
from skerry.server.offload.offload import Offload
from skerry.server.workspaces.catalogue import HubCatalogue
from skerry.server.workspaces.records import Binding, BoundType
from skerry.server.workspaces.schema_rules import SchemaRules
from skerry.server.workspaces.state import KEPT_CONVERSION, KEPT_SCHEMAS, HubState
from tests.kit.server.calls import call_of
from tests.kit.server.hub import definition, schema

NAME = "v1.widgets.example.io"


def state(*, bound: bool = False) -> HubState:
    made = HubState()
    made.schemas["shop", NAME] = schema()
    if bound:
        kind = BoundType("shop", NAME, "u-1", "identity", "example.io", "widgets")
        made._take(Binding("shop", "widgets", (kind,)))
    return made


async def admit(
    resource: str,
    obj: Object,
    verb: Verb = "CREATE",
    old: Object | None = None,
    *,
    known: HubState | None = None,
    cluster: str = "shop",
    **more: Any,
) -> Operation:
    known = known or state()
    types = HubCatalogue(HubState()).types("shop")
    group = "apiextensions.k8s.io" if "definitions" in resource else "apis.kcp.io"
    version = "v1" if "definitions" in resource else "v1alpha1"
    kind = present(types.find(group, version, resource), "every workspace has it")
    operation = Operation(call_of(replace(kind), cluster=cluster), verb, deepcopy(obj), old, **more)
    await SchemaRules(known, Offload()).admit(operation)
    return operation


async def refusal(*args: Any, **more: Any) -> str:
    with pytest.raises(Forbidden) as caught:
        await admit(*args, **more)
    return str(caught.value)


async def test_a_schema_is_judged_as_the_definition_it_amounts_to() -> None:
    await admit("apiresourceschemas", schema())
    wrong = schema()
    wrong["spec"]["versions"][0]["schema"]["properties"]["spec"]["type"] = "nonsense"
    assert "nonsense" in await refusal("apiresourceschemas", wrong)


async def test_a_schema_never_changes() -> None:
    new = schema()
    new["metadata"]["labels"] = {"a": "b"}
    await admit("apiresourceschemas", new, "UPDATE", schema())
    new["spec"]["scope"] = "Namespaced"
    assert "immutable" in await refusal("apiresourceschemas", new, "UPDATE", schema())


async def test_a_schema_that_is_deleted_while_bound_is_kept_with_its_conversion() -> None:
    gone = schema()
    gone["metadata"].update(uid="u-1", annotations={"kcp.io/cluster": "shop"})
    assert (await admit("apiresourceschemas", gone, "DELETE")).writes == []
    known = state(bound=True)
    conversion: Object = {"spec": {"conversions": []}}
    known.conversions["shop", NAME] = conversion
    rehearsed = await admit("apiresourceschemas", gone, "DELETE", known=known, dry_run=True)
    assert rehearsed.writes == []
    [write] = (await admit("apiresourceschemas", gone, "DELETE", known=known)).writes
    assert write.key == ObjectKey(*KEPT_SCHEMAS, "root", "", "u-1").path()
    assert write.value is not None
    assert decode(write.value, 1)[KEPT_CONVERSION] == conversion


async def test_a_conversion_is_of_a_schema_of_its_own_workspace_and_fits_it() -> None:
    made: Object = {"metadata": {"name": NAME}, "spec": {"conversions": []}}
    await admit("apiconversions", made)
    assert "not found" in await refusal("apiconversions", made, cluster="away")
    rule = {"field": ".spec.size", "destination": ".spec.length"}
    made["spec"]["conversions"] = [{"from": "v1", "to": "v9", "rules": [rule]}]
    assert "v9" in await refusal("apiconversions", made)
    await admit("apiconversions", made, "DELETE", cluster="away")


async def test_groups_and_annotations_of_the_system_are_not_for_definitions() -> None:
    await admit("customresourcedefinitions", definition())
    own = definition()
    own["spec"]["group"] = "apis.kcp.io"
    assert "reserved group" in await refusal("customresourcedefinitions", own)
    marked = definition()
    marked["metadata"]["annotations"] = {"apis.kcp.io/bound-crd": "", "x.apis.kcp.io/y": ""}
    found = await refusal("customresourcedefinitions", marked)
    assert "[apis.kcp.io/bound-crd is a reserved annotation, x.apis.kcp.io/y is" in found
    await admit("customresourcedefinitions", marked, cluster="system:bound-crds")
    near = definition()
    near["metadata"]["annotations"] = {"myapis.kcp.io/x": ""}
    await admit("customresourcedefinitions", near)
