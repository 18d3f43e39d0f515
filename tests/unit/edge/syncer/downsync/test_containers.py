"""Whether a Namespace or a definition holds anything that is not ours, asked of a real edge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from skerry.api.errors import ApiError, Forbidden, InternalError, MethodNotAllowed, NotFound
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef, namespace_ref
from skerry.edge.syncer.downsync.containers import others_inside
from skerry.logic.fleet.syncing.recorded import DownsyncRecord
from skerry.logic.fleet.syncing.wanted import Desired
from skerry.runtime.discovery import discover
from skerry.runtime.transport import NO_HEADERS, Answer
from tests.kit.chain.syncer_place import PAGE, Place, place
from tests.kit.chain.syncer_world import CONFIG_MAPS, CRDS, Switch
from tests.kit.sim.loop import virtual

SHOP = namespace_ref("shop")
ROLE_BINDINGS = GroupVersionResource("rbac.authorization.k8s.io", "v1", "rolebindings")


def config_map(name: str, **metadata: object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "shop", **metadata},
    }


async def inside(here: Place, ref: ObjectRef = SHOP, record: DownsyncRecord | None = None) -> str:
    """Return the answer once the types of the edge are known."""
    types = here.state.edge_types
    if not types.known:
        await types._take(await discover(here.state.edge))
    return await others_inside(here.state, ref, record)


@virtual
async def test_what_every_namespace_is_born_with_is_nobodys(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        assert await inside(here) == ""


@virtual
async def test_a_strangers_object_is_named(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        await here.world.edge.client.create(CONFIG_MAPS, config_map("theirs"), "shop")
        said = await inside(here)
        assert said.endswith("such as configmaps/shop/theirs")


@virtual
async def test_what_we_are_to_delete_as_well_and_what_belongs_to_something_does_not_count(
    tmp_path: Path,
) -> None:
    async with place(tmp_path) as here:
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "page", "uid": "u"}
        client = here.world.edge.client
        await client.create(CONFIG_MAPS, config_map("page"), "shop")
        await client.create(CONFIG_MAPS, config_map("child", ownerReferences=[owner]), "shop")
        record = DownsyncRecord(Desired("v1", config_map("page"), "m1", 1))
        here.state.records.set_placed(PAGE, record)
        here.state.budget.propose((PAGE,))
        assert await inside(here) == ""
        here.state.budget.withdraw(PAGE)
        assert "configmaps/shop/page" in await inside(here), "it is still wanted"
        here.state.budget.propose((PAGE,))
        here.state.records.put("placed/" + PAGE.text, None)
        assert "configmaps/shop/page" in await inside(here)


@virtual
async def test_a_definition_without_instances_or_without_its_type_is_empty(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        content = {
            "spec": {
                "group": "test.example",
                "names": {"plural": "widgets"},
                "versions": [{"name": "v1", "served": True}],
            }
        }
        ref = ObjectRef("", CRDS.group, CRDS.resource, "", "widgets.test.example")
        record = DownsyncRecord(Desired("v1", content, "m1", 1))
        assert await inside(here, ref, record) == ""
        instances = replace(record, desired=replace(record.desired, content=_config_maps()))
        assert await inside(here, ref, instances) == ""
        await here.world.edge.client.create(CONFIG_MAPS, config_map("theirs"), "shop")
        assert "configmaps/shop/theirs" in await inside(here, ref, instances)


def _config_maps() -> Object:
    """Return a definition of a type that the edge has instances of already."""
    return {
        "spec": {
            "group": "",
            "names": {"plural": "configmaps"},
            "versions": [{"name": "v0", "served": False}, {"name": "v1", "served": True}],
        }
    }


ANOTHER = Answer(200, {}, b"{}")
ALLOW_LIST = (
    "to know that nothing else is inside, the edge must allow list of configmaps "
    "in API group \"\" in namespace 'shop'"
)


class Answers(Switch):
    """The edge, which answers lists of config maps in another way."""

    answer: Answer = ANOTHER

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        if path.endswith("/configmaps") and method == "GET":
            return self.answer
        return await super().request(method, path, query, headers, body)


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        (NotFound.of("", "configmaps", "x"), ""),
        (MethodNotAllowed("a store that cannot list"), ""),
        (
            Forbidden("no"),
            ALLOW_LIST,
        ),
        (InternalError("the store is away"), "nobody knows what is inside: the store is away"),
    ],
    ids=["gone meanwhile", "cannot be listed", "forbidden", "failing"],
)
@virtual
async def test_what_cannot_be_listed_is_not_taken_for_empty_unless_it_is(
    tmp_path: Path, error: ApiError, wanted: str
) -> None:
    async with place(tmp_path) as here:
        await inside(here)
        answers = Answers(here.world.edge.transport)
        answers.answer = Answer(error.code, {}, orjson.dumps(error.status()))
        here.world.to_edge.inner = answers
        assert await inside(here) == wanted


@pytest.mark.parametrize(
    ("labels", "stranger"), [({"app.kubernetes.io/managed-by": "skerry"}, False), ({}, True)]
)
@virtual
async def test_the_role_binding_by_which_we_work_here_is_no_stranger(
    tmp_path: Path, labels: dict[str, str], stranger: bool
) -> None:
    async with place(tmp_path) as here:
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "skerry-syncer", "namespace": "shop", "labels": labels},
            "roleRef": role,
        }
        await here.world.edge.client.create(ROLE_BINDINGS, binding, "shop")
        assert bool(await inside(here)) is stranger
