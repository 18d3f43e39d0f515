"""ValidatingAdmissionPolicies as clients meet them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skerry.api.edge import PROJECTED
from skerry.server.access import Attributes, Decision
from skerry.server.user import User
from tests.kit.machinery.policies import CONFIG_MAP_RULE, binding, policy
from tests.kit.server.harness import Reply, Server, serving
from tests.kit.server.hub import WIDGETS, Hub, provider, running_hub, widget
from tests.kit.server.hub import binding as api_binding
from tests.kit.server.refusing import Except

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
POLICIES = f"{ADMISSION}/validatingadmissionpolicies"
BINDINGS = f"{ADMISSION}/validatingadmissionpolicybindings"
MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def config_map(name: str = "vv", **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


async def put_in_force(server: Server, made: dict[str, Any], *bound: dict[str, Any]) -> None:
    reply = await server.create(POLICIES, made)
    assert reply.status == 201, reply.body
    for each in bound or (binding(),):
        reply = await server.create(BINDINGS, each)
        assert reply.status == 201, reply.body


async def replace(server: Server, path: str, wanted: dict[str, Any]) -> Reply:
    """Replace what is at *path*, whichever version it has."""
    version = (await server.get(path)).body["metadata"]["resourceVersion"]
    metadata = {**wanted["metadata"], "resourceVersion": version}
    return await server.put(path, {**wanted, "metadata": metadata})


def denial(reply: Reply) -> tuple[int, str, str]:
    return reply.status, reply.body["reason"], reply.body["message"]


def shown(why: str, name: str = "vv", kind: str = "configmaps") -> str:
    about = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request"
    return f'{kind} "{name}" is forbidden: {about}: {why}'


async def test_a_bound_policy_is_in_force_when_its_writer_is_answered() -> None:
    async with serving() as server:
        await put_in_force(server, policy("p", "!('deny' in object.data)"))
        refused = await server.create(MAPS, config_map(deny="x"))
        assert denial(refused) == (
            422,
            "Invalid",
            shown("failed expression: !('deny' in object.data)"),
        )
        about = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: "
        assert refused.body["details"] == {
            "name": "vv",
            "kind": "configmaps",
            "causes": [{"message": about + "failed expression: !('deny' in object.data)"}],
        }
        assert (await server.create(MAPS, config_map(a="x"))).status == 201
        await server.delete(f"{BINDINGS}/b")
        assert (await server.create(MAPS, config_map("ww", deny="x"))).status == 201


@pytest.mark.parametrize(
    ("reason", "status"), [("Forbidden", 403), ("RequestEntityTooLarge", 413), ("Invalid", 422)]
)
async def test_the_reason_of_a_validation_is_that_of_the_answer(reason: str, status: int) -> None:
    validations = [{"expression": "false", "message": "no", "reason": reason}]
    async with serving() as server:
        await put_in_force(server, policy("p", validations=validations))
        assert denial(await server.create(MAPS, config_map())) == (status, reason, shown("no"))


async def test_other_actions_warn_and_let_pass() -> None:
    async with serving() as server:
        actions = ["Warn", "Audit"]
        await put_in_force(server, policy("p", "false"), binding(validationActions=actions))
        reply = await server.create(MAPS, config_map())
        assert reply.status == 201
        assert reply.warnings == [
            (
                "299 - \"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': "
                'failed expression: false"'
            )
        ]


async def test_what_is_invalid_by_itself_is_reported_before_any_policy() -> None:
    async with serving() as server:
        await put_in_force(server, policy("p", "false"))
        refused = await server.create(MAPS, config_map("Bad Name"))
        assert refused.body["message"].startswith('ConfigMap "Bad Name" is invalid')


async def test_an_update_sees_both_objects_and_no_trace_of_how_they_are_stored() -> None:
    rule = {"resourceRules": [{**CONFIG_MAP_RULE, "operations": ["UPDATE"]}]}
    fixed = "object.data.max == oldObject.data.max"
    unstamped = "!has(object.metadata.annotations)"
    async with serving() as server:
        await server.create(MAPS, config_map(max="3"))
        await put_in_force(server, policy("p", fixed, unstamped, matchConstraints=rule))
        refused = await server.patch(f"{MAPS}/vv", {"data": {"max": "9"}})
        assert denial(refused)[2] == shown(f"failed expression: {fixed}")
        assert (await server.patch(f"{MAPS}/vv", {"data": {"other": "9"}})).status == 200


async def test_a_delete_has_only_an_old_object() -> None:
    rule = {"resourceRules": [{**CONFIG_MAP_RULE, "operations": ["DELETE"]}]}
    expression = "object != null || oldObject.metadata.name != 'vv'"
    async with serving() as server:
        await server.create(MAPS, config_map())
        await put_in_force(server, policy("p", expression, matchConstraints=rule))
        assert (await server.delete(f"{MAPS}/vv")).status == 422
        assert (await server.get(f"{MAPS}/vv")).status == 200


async def test_a_scale_is_judged_as_a_scale() -> None:
    rule = {**CONFIG_MAP_RULE, "apiGroups": ["apps"], "resources": ["deployments/scale"]}
    validation = {
        "expression": "object.spec.replicas <= 5",
        "messageExpression": "request.subResource + ' ' + request.kind.kind + ' ' + object.kind",
    }
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    async with serving() as server:
        await server.create(DEPLOYMENTS, {"metadata": {"name": "dd"}, "spec": spec})
        made = policy("p", matchConstraints={"resourceRules": [rule]}, validations=[validation])
        await put_in_force(server, made)
        refused = await server.patch(f"{DEPLOYMENTS}/dd/scale", {"spec": {"replicas": 9}})
        assert denial(refused)[2] == shown("scale Scale Scale", "dd", "deployments.apps")
        assert (await server.patch(f"{DEPLOYMENTS}/dd", {"spec": {"replicas": 9}})).status == 200


PARAMS = {"apiVersion": "v1", "kind": "ConfigMap"}
WITHIN = {
    "expression": "size(object.data) < int(params.data.max)",
    "messageExpression": "'max ' + params.data.max",
}


def parameters(**reference: Any) -> dict[str, Any]:
    return binding(paramRef={"parameterNotFoundAction": "Deny", **reference})


async def test_parameters_are_found_by_name_and_by_selector() -> None:
    labelled = {"metadata": {"name": "five", "labels": {"p": "1"}}, "data": {"max": "5"}}
    four = dict.fromkeys("abcd", "x")
    async with serving() as server:
        await server.create(MAPS, config_map("three", max="3"))
        await server.create(MAPS, labelled)
        made = policy("p", paramKind=PARAMS, validations=[WITHIN])
        await put_in_force(server, made, parameters(name="three", namespace="default"))
        assert denial(await server.create(MAPS, config_map(**four)))[2] == shown("max 3")
        await replace(server, f"{BINDINGS}/b", parameters(selector={"matchLabels": {"p": "1"}}))
        assert (await server.create(MAPS, config_map(**four))).status == 201


@pytest.mark.parametrize(
    ("kind", "reference", "message"),
    [
        (
            PARAMS,
            {"name": "nope"},
            (
                "with binding 'b' denied request: failed to configure binding: no params found for "
                "policy binding with `Deny` parameterNotFoundAction"
            ),
        ),
        (
            {"apiVersion": "foo.io/v1", "kind": "Foo"},
            {"name": "nope"},
            (
                "denied request: failed to configure policy: failed to find resource referenced by "
                "paramKind: 'foo.io/v1, Kind=Foo'"
            ),
        ),
        (
            {"apiVersion": "v1", "kind": "Namespace"},
            {"name": "default", "namespace": "default"},
            (
                "with binding 'b' denied request: failed to configure binding: paramRef.namespace "
                "must not be provided for a cluster-scoped `paramKind`"
            ),
        ),
    ],
)
async def test_parameters_that_cannot_be_found_deny(
    kind: dict[str, str], reference: dict[str, str], message: str
) -> None:
    async with serving() as server:
        await put_in_force(server, policy("p", paramKind=kind), parameters(**reference))
        message = f"configmaps \"vv\" is forbidden: ValidatingAdmissionPolicy 'p' {message}"
        assert denial(await server.create(MAPS, config_map()))[2] == message
        await server.patch(f"{POLICIES}/p", {"spec": {"failurePolicy": "Ignore"}})
        assert (await server.create(MAPS, config_map())).status == 201


async def test_missing_parameters_may_be_allowed() -> None:
    async with serving() as server:
        bound = parameters(name="nope", parameterNotFoundAction="Allow")
        await put_in_force(server, policy("p", "false", paramKind=PARAMS), bound)
        assert (await server.create(MAPS, config_map())).status == 201


class OnlyFrob:
    """Allows everything but what policies ask about."""

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        return Decision(attributes.verb != "frob" or user.name.endswith(":robot"))


async def test_the_authorizer_answers_for_the_user_and_for_service_accounts() -> None:
    question = "group('').resource('configmaps').check('frob').allowed()"
    robot = f"authorizer.serviceAccount('default', 'robot').{question}"
    async with serving(authorizer=OnlyFrob()) as server:
        await put_in_force(server, policy("p", f"authorizer.{question}", robot))
        refused = await server.create(MAPS, config_map())
        assert denial(refused)[2] == shown(f"failed expression: authorizer.{question}")


async def test_what_a_policy_means_by_name_or_label_is_asked_for_every_object() -> None:
    named = {**CONFIG_MAP_RULE, "resourceNames": ["named"]}
    labelled = {"matchLabels": {"judged": "yes"}}
    matches = {
        "name": {"resourceRules": [named]},
        "label": {"resourceRules": [CONFIG_MAP_RULE], "objectSelector": labelled},
        "type": {"resourceRules": [CONFIG_MAP_RULE]},
    }
    async with serving() as server:
        for name, match in matches.items():
            validations = [{"expression": "!has(object.data)", "message": name}]
            made = policy(name, matchConstraints=match, validations=validations)
            await put_in_force(server, made, binding(name, name, validationActions=["Warn"]))
        for _ in range(2):
            said = []
            for obj in (config_map("vv", a="b"), config_map("named", a="b"), config_map("vv")):
                obj["metadata"]["labels"] = {"judged": "yes" if obj.get("data") else "no"}
                reply = await server.create(f"{MAPS}?dryRun=All", obj)
                said.append([text.rpartition(" ")[2].strip('"') for text in reply.warnings])
            assert said == [["label", "type"], ["label", "name", "type"], ["type"]]


async def test_policies_can_always_be_repaired() -> None:
    everything = {key: ["*"] for key in CONFIG_MAP_RULE}
    async with serving() as server:
        made = policy("p", "false", matchConstraints={"resourceRules": [everything]})
        await put_in_force(server, made)
        assert (await server.create(MAPS, config_map())).status == 422
        assert (await server.patch(f"{POLICIES}/p", {"metadata": {"labels": {}}})).status == 200
        assert (await server.delete(f"{BINDINGS}/b")).status == 200


async def test_a_policy_says_in_its_status_what_it_reads_in_vain() -> None:
    rule = {**CONFIG_MAP_RULE, "apiGroups": ["apps"], "resources": ["deployments"]}
    match = {"resourceRules": [rule]}
    async with serving() as server:
        made = policy("p", "object.spec.foo == 1", matchConstraints=match)
        reply = await server.create(POLICIES, made)
        status = reply.body["status"]
        assert status["observedGeneration"] == 1
        (warning,) = status["typeChecking"]["expressionWarnings"]
        assert warning["fieldRef"] == "spec.validations[0].expression"
        mended = policy("p", "object.spec.replicas == 1", matchConstraints=match)
        reply = await replace(server, f"{POLICIES}/p", mended)
        assert reply.body["status"] == {"observedGeneration": 2, "typeChecking": {}}


# -- in workspaces ---------------------------------------------------------------------------


async def bound_in(hub: Hub, where: str, made: dict[str, Any]) -> None:
    await hub.create(where, POLICIES, made)
    await hub.create(where, BINDINGS, binding())


async def refused_with(hub: Hub, where: str, path: str, obj: dict[str, Any]) -> str:
    reply = await hub.ask("kcp-admin", "POST", f"/clusters/{where}{path}", obj)
    return "" if reply.status == 201 else str(reply.body["message"])


async def test_a_policy_is_in_force_in_its_own_workspace_alone(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub:
        for name in ("one", "two"):
            await hub.workspace("root", name)
        await bound_in(hub, "root:one", policy("p", "false"))
        assert await refused_with(hub, "root:one", MAPS, config_map()) == shown(
            "failed expression: false"
        )
        assert await refused_with(hub, "root:two", MAPS, config_map()) == ""


async def test_an_exporters_policy_is_in_force_for_what_is_bound(tmp_path: Path) -> None:
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["widgets"]}
    made = policy("p", "object.metadata.name != 'bad'", matchConstraints={"resourceRules": [rule]})
    async with running_hub(tmp_path) as hub:
        for name in ("exporter", "consumer"):
            await hub.workspace("root", name)
        await provider(hub, "root:exporter")
        bound = api_binding("widgets", "root:exporter", "widgets")
        await hub.create("root:consumer", "/apis/apis.kcp.io/v1alpha1/apibindings", bound)
        await hub.settled()
        await bound_in(hub, "root:exporter", made)
        assert "denied request" in await refused_with(hub, "root:consumer", WIDGETS, widget("bad"))
        assert await refused_with(hub, "root:consumer", WIDGETS, widget("good")) == ""


async def test_labelling_an_object_as_a_copy_does_not_evade_a_policy(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub:
        await hub.workspace("root", "one")
        await bound_in(hub, "root:one", policy("p", "false"))
        copy = {"metadata": {"name": "vv", "labels": {PROJECTED: "yes"}}}
        assert "denied request" in await refused_with(hub, "root:one", MAPS, copy)


async def test_a_policy_that_takes_long_is_judged_by_a_worker(tmp_path: Path) -> None:
    costly = "object.data.all(k, object.data.exists(l, l == k))"
    asking = "authorizer.path('/x').check('get').allowed()"
    many = config_map(**{f"k{n:03}": "x" for n in range(300)})
    async with running_hub(tmp_path, workers=1) as hub:
        await hub.workspace("root", "one")
        await bound_in(hub, "root:one", policy("p", costly, asking, f"!{asking}"))
        # The answer is the one that would have been given here, questions to RBAC included.
        said = await refused_with(hub, "root:one", MAPS, many)
        assert said == shown(f"failed expression: !{asking}")


async def test_parameters_that_one_may_not_read_are_refused() -> None:
    made = policy("p", "true", paramKind={"apiVersion": "v1", "kind": "Secret"})
    async with serving(authorizer=Except("get secrets")) as server:
        refused = await server.create(POLICIES, made)
        assert (refused.status, refused.body["reason"]) == (422, "Invalid")
        assert "spec.paramKind: Forbidden" in refused.body["message"]
