"""One policy, judged about one write: its parameters, what it finds, and what follows from it."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from skerry.api.errors import ApiError, Forbidden, Invalid, RequestEntityTooLarge
from skerry.api.keys import ObjectKey
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.logic.machinery.admission.policies import binding_of
from skerry.server.access import Attributes, Decision
from skerry.server.admission.operation import Operation
from skerry.server.admission.policy_run import Applied, Judged, PolicyRun, Surroundings
from skerry.server.catalogue import Catalogue, builtin_types
from skerry.server.codec import encode
from skerry.server.observed import ObservedObjects
from skerry.server.offload.offload import Offload
from skerry.server.user import User
from skerry.store.base import Write
from skerry.store.memory import MemoryStore
from tests.kit.machinery.objects import resource
from tests.kit.machinery.policies import binding, policy
from tests.kit.server.calls import call_of
from tests.kit.server.harness import Everybody

MAPS = GroupVersionResource("", "v1", "configmaps")
PARAMS = {"apiVersion": "v1", "kind": "ConfigMap"}
BY_NAME = {"name": "limits", "namespace": "default"}
FAILURES = "validation.policy.admission.k8s.io/validation_failure"
TYPES = Catalogue(builtin_types())


class Asked(Everybody):
    """Allows one user everything, and remembers who was asked about."""

    def __init__(self) -> None:
        self.users: list[tuple[User, Attributes]] = []

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        self.users.append((user, attributes))
        return Decision(user.name == "ann", "because")


class Place:
    """A cluster with parameters, in which ann creates a ConfigMap."""

    def __init__(self, namespace: str = "default") -> None:
        self.store, self.authorizer = MemoryStore("test"), Asked()
        around = Surroundings(
            self.store, TYPES, ObservedObjects("", "namespaces"), self.authorizer, Offload()
        )
        call = call_of(
            resource("configmaps"), user=User("ann"), cluster="root", namespace=namespace
        )
        obj = {"metadata": {"name": "x"}, "data": {"size": "5"}}
        self.operation = Operation(call, "CREATE", obj)
        self.run = PolicyRun(around, self.operation, None)

    async def params(self, *maps: tuple[str, str], cluster: str = "root") -> None:
        """Store ConfigMaps of a name and a size, labelled with both."""
        for name, size in maps:
            metadata = {"name": name, "labels": {"name": name, "size": size}}
            obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
            obj["data"] = {"max": size}
            key = ObjectKey("", "configmaps", cluster, "default", name)
            await self.store.commit([Write(key.path(), encode(obj))])

    async def judge(
        self, made: Object, *bound: Object, kind: GroupVersionResource = MAPS, cluster: str = "root"
    ) -> None:
        applied = Applied(made, [binding_of(each) for each in bound or (binding(),)])
        await self.run.judge(Judged(applied, cluster, kind, applied.bindings))


async def refusal(place: Place, made: Object, *bound: Object, **more: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        await place.judge(made, *bound, **more)
    return caught.value


def small(**spec: Any) -> Object:
    text = "int(object.data.size) <= int(params.data.max)"
    return policy("p", text, **{"paramKind": PARAMS, **spec})


# -- what follows --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "error"),
    [
        ("Invalid", Invalid),
        ("Forbidden", Forbidden),
        ("RequestEntityTooLarge", RequestEntityTooLarge),
        ("Unauthorized", Invalid),
    ],
)
async def test_the_reason_chooses_the_status(reason: str, error: type[ApiError]) -> None:
    made = policy("p", validations=[{"expression": "false", "message": "no", "reason": reason}])
    found = await refusal(Place(), made)
    assert type(found) is error
    assert found.status()["message"] == (
        "configmaps \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied "
        "request: no"
    )


async def test_a_binding_that_audits_lets_pass_and_notes_every_failure() -> None:
    place = Place()
    await place.judge(policy("p", "false", "true", "1 > 2"), binding(validationActions=["Audit"]))
    noted = orjson.loads(place.operation.noted(FAILURES) or b"")
    assert [each["expressionIndex"] for each in noted] == [0, 2]
    assert {(each["policy"], each["binding"]) for each in noted} == {("p", "b")}
    assert place.operation.call.warnings == []


async def test_annotations_of_several_parameters_are_joined_and_equal_ones_said_once() -> None:
    place = Place()
    await place.params(("a", "6"), ("b", "7"), ("c", "6"), ("d", "7"))
    notes = [{"key": "max", "valueExpression": "string(params.data.max)"}]
    everyone = binding(paramRef={"selector": {}, "namespace": "default"})
    await place.judge(small(auditAnnotations=notes), everyone)
    assert place.operation.noted("p/max") == "6, 7"


async def test_a_write_that_is_tried_again_is_noted_once() -> None:
    place = Place()
    await place.params(("a", "6"), ("b", "7"))
    reference = {"selector": {}, "namespace": "default"}
    notes = [{"key": "max", "valueExpression": "string(params.data.max)"}]
    made = small(auditAnnotations=notes, validations=[{"expression": "false"}])
    bound = binding(paramRef=reference, validationActions=["Audit"])
    await place.judge(made, bound)
    first = dict(place.operation.call.request.audit_annotations or {})
    assert set(first) == {FAILURES, "p/max"}
    await place.judge(made, bound)
    assert place.operation.call.request.audit_annotations == first


async def test_what_the_audit_log_gets_of_one_request_is_bounded() -> None:
    place = Place()
    await place.params(*((f"p{number:02}", str(number)) for number in range(40)))
    text = "string(params.data.max) + '" + "x" * 4000 + "'"
    made = small(
        auditAnnotations=[{"key": "max", "valueExpression": text}],
        validations=[{"expression": "false", "messageExpression": text}],
    )
    reference = {"selector": {}, "namespace": "default"}
    await place.judge(made, binding(paramRef=reference, validationActions=["Audit"]))
    noted = place.operation.call.request.audit_annotations or {}
    assert {key: 64 < len(value) // 1024 < 70 for key, value in noted.items()} == {
        "p/max": True,
        FAILURES: True,
    }


# -- parameters ----------------------------------------------------------------------------------


async def test_a_policy_is_held_against_each_of_its_parameters() -> None:
    place = Place()
    await place.params(("wide", "9"), ("limits", "3"))
    await place.judge(small(), binding(paramRef={**BY_NAME, "name": "wide"}))
    assert isinstance(await refusal(place, small(), binding(paramRef=BY_NAME)), Invalid)
    by_label = {"namespace": "default", "selector": {"matchLabels": {"name": "wide"}}}
    await place.judge(small(), binding(paramRef=by_label))
    await refusal(place, small(), binding(paramRef={**by_label, "selector": {}}))


async def test_parameters_are_found_however_many_there_are() -> None:
    place = Place()
    await place.params(*((f"p{number:03}", "9") for number in range(250)), ("zlast", "3"))
    reference = {"namespace": "default", "selector": {"matchLabels": {"name": "zlast"}}}
    await refusal(place, small(), binding(paramRef=reference))


async def test_parameters_are_those_of_the_policys_own_cluster() -> None:
    place = Place()
    await place.params(("limits", "9"))
    await place.params(("limits", "3"), cluster="exporter")
    await place.judge(small(), binding(paramRef=BY_NAME))
    await refusal(place, small(), binding(paramRef=BY_NAME), cluster="exporter")


async def test_without_a_namespace_parameters_are_those_beside_the_object() -> None:
    place = Place()
    await place.params(("limits", "3"))
    await refusal(place, small(), binding(paramRef={"name": "limits"}))
    other = Place("other")
    await other.params(("limits", "3"))
    found = await refusal(other, small(), binding(paramRef={"name": "limits"}))
    assert "no params found" in str(found)


@pytest.mark.parametrize(
    ("spec", "reference", "why"),
    [
        ({}, BY_NAME, "no params found for policy binding"),
        ({"paramKind": {"apiVersion": "example.org/v1", "kind": "Nothing"}}, BY_NAME,
         "failed to find resource referenced by paramKind: 'example.org/v1, Kind=Nothing'"),
        ({"paramKind": {"apiVersion": "v1", "kind": "Node"}}, BY_NAME,
         "paramRef.namespace must not be provided for a cluster-scoped"),
    ],
)  # fmt: skip
async def test_a_configuration_that_does_not_fit_refuses_unless_failures_are_ignored(
    spec: Object, reference: Object, why: str
) -> None:
    bound = binding(paramRef=reference)
    assert why in str(await refusal(Place(), small(**spec), bound))
    await Place().judge(small(failurePolicy="Ignore", **spec), bound)


async def test_parameters_of_a_namespace_do_not_fit_an_object_without_one() -> None:
    found = await refusal(Place(""), small(), binding(paramRef={"name": "limits"}))
    assert "cannot use namespaced paramRef" in str(found)


async def test_where_no_parameters_are_needed_their_absence_lets_pass() -> None:
    lenient = binding(paramRef={**BY_NAME, "parameterNotFoundAction": "Allow"})
    await Place().judge(small(), lenient)


# -- questions to the authorizer -----------------------------------------------------------------


async def test_an_expression_asks_about_whoever_writes_in_the_cluster_of_the_write() -> None:
    place = Place()
    text = "authorizer.group('apps').resource('deployments').namespace('ns').check('get').allowed()"
    await place.judge(policy("p", text), cluster="exporter")
    [(user, asked)] = place.authorizer.users
    assert user.name == "ann"
    assert (asked.cluster, asked.verb, asked.group, asked.resource, asked.namespace) == (
        "root",
        "get",
        "apps",
        "deployments",
        "ns",
    )


async def test_an_account_is_asked_about_with_its_groups_and_as_the_clusters_own() -> None:
    place = Place()
    text = "authorizer.serviceAccount('ns', 'robot').path('/x').check('get').allowed()"
    await refusal(place, policy("p", text))
    [(user, asked)] = place.authorizer.users
    assert (user.name, user.home) == ("system:serviceaccount:ns:robot", "root")
    assert "system:authenticated" in user.groups
    assert asked.path == "/x"


# -- the quick way -------------------------------------------------------------------------------


async def test_the_quick_look_never_lets_pass_what_the_full_one_refuses() -> None:
    place = Place()
    for text in ("object.data.size == '5'", "object.data.size == '6'", "object.data.none == ''"):
        applied = Applied(policy("p", text), [binding_of(binding())])
        judged = Judged(applied, "root", MAPS, applied.bindings)
        assert not place.run.is_fine(judged), "nothing is known before it is compiled"
        outcome = await place.run.outcome(judged)
        assert place.run.is_fine(judged) == (not outcome.denials), text
