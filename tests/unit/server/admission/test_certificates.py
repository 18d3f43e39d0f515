"""Requests for certificates: the server says who asks, RBAC who decides, nobody changes them."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.errors import Forbidden, Invalid
from skerry.api.objects import Object
from skerry.server.access import Attributes, Authorizer, Decision
from skerry.server.admission.certificates import CertificateRequests, may_decide
from skerry.server.admission.operation import Operation, Verb
from skerry.server.user import User
from tests.kit.machinery.objects import resource
from tests.kit.server.calls import call_of
from tests.kit.server.certificates import encoded_csr
from tests.kit.server.clock import HandClock
from tests.kit.server.harness import Everybody

GROUP = "certificates.k8s.io"
KIND = resource("certificatesigningrequests", GROUP)
SIGNER = "kubernetes.io/kube-apiserver-client"
JANE = User("jane", "u-1", ("dev",), {"team": ("red",)})
NOW = "2030-01-01T00:00:00Z"


class Grants:
    """Allows what was granted: verb and signer in a cluster."""

    def __init__(self, *granted: tuple[str, str, str]) -> None:
        self._granted = granted

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        asked = (attributes.cluster, attributes.verb, attributes.name)
        right = (attributes.group, attributes.resource) == (GROUP, "signers")
        return Decision(right and asked in self._granted)


def request(signer: str = SIGNER, *groups: str, **spec: Any) -> Object:
    asked = {"request": encoded_csr("jane", *groups), "signerName": signer, **spec}
    return {"metadata": {"name": "r"}, "spec": asked}


def decided(kind: str = "Approved", **more: Any) -> Object:
    condition = {"type": kind, "status": "True", **more}
    return {**request(), "status": {"conditions": [condition]}}


async def admitted(
    verb: Verb,
    obj: Object,
    old: Object | None = None,
    *,
    authorizer: Authorizer | None = None,
    subresource: str = "",
    user: User = JANE,
    cluster: str = "root",
) -> Object:
    call = call_of(KIND, user=user, cluster=cluster)
    operation = Operation(call, verb, obj, old, subresource=subresource)
    await CertificateRequests(authorizer or Grants(), HandClock()).admit(operation)
    return operation.obj


async def test_whoever_asks_is_named_by_the_server_whatever_the_request_says() -> None:
    forged = request(username="root", groups=["system:masters"], uid="0", extra={"a": ["b"]})
    made = await admitted("CREATE", forged)
    named = {name: made["spec"][name] for name in ("username", "uid", "groups", "extra")}
    wanted = {"username": "jane", "uid": "u-1", "groups": ["dev"], "extra": {"team": ["red"]}}
    assert named == wanted


async def test_a_principal_of_another_cluster_is_named_as_a_stranger_without_groups() -> None:
    robot = User("system:serviceaccount:ns:robot", "u-2", ("system:serviceaccounts",), home="away")
    made = await admitted("CREATE", request(groups=["system:masters"]), user=robot)
    assert "groups" not in made["spec"]
    assert made["spec"]["username"] != robot.name


async def test_what_was_asked_for_is_never_changed() -> None:
    changed = {**request("other.example/signer", username="root"), "status": {}}
    for subresource in ("", "status", "approval"):
        made = await admitted("UPDATE", changed, request(), subresource=subresource)
        assert made["spec"] == request()["spec"]


@pytest.mark.parametrize(("subresource", "verb"), [("approval", "approve"), ("status", "sign")])
async def test_a_decision_needs_its_verb_on_the_signer_of_the_stored_request(
    subresource: str, verb: str
) -> None:
    other = "sign" if verb == "approve" else "approve"
    # The signer that counts is that of before, whatever the writer says it is.
    forged = {**decided(), "spec": request("mine.example/any")["spec"]}
    refused = [
        Grants(),
        Grants(("root", other, SIGNER)),
        Grants(("away", verb, SIGNER)),
        Grants(("root", verb, "mine.example/any"), ("root", verb, "mine.example/*")),
    ]
    for authorizer in refused:
        with pytest.raises(Forbidden, match=f"not permitted to {verb} requests"):
            await admitted(
                "UPDATE", forged, request(), authorizer=authorizer, subresource=subresource
            )
    granted = Grants(("root", verb, SIGNER))
    await admitted("UPDATE", decided(), request(), authorizer=granted, subresource=subresource)


async def test_a_write_that_decides_nothing_needs_no_right_to_the_signer() -> None:
    before = decided()
    await admitted("UPDATE", decided(), before, subresource="approval")
    await admitted("DELETE", before)


def test_a_whole_domain_of_signers_can_be_granted() -> None:
    grants = Grants(("root", "sign", "kubernetes.io/*"))
    assert may_decide(grants, JANE, "root", "sign", SIGNER)
    assert not may_decide(grants, JANE, "root", "sign", "example.org/signer")
    assert not may_decide(grants, JANE, "root", "approve", SIGNER)


async def test_conditions_are_dated_and_keep_the_time_of_their_last_change() -> None:
    past = {"lastTransitionTime": "2029-01-01T00:00:00Z", "lastUpdateTime": "2029-01-01T00:00:00Z"}
    both = [{"type": "Approved", "status": "True", "reason": "x"}, {"type": "Failed"}]
    new = {**request(), "status": {"conditions": both}}
    made = await admitted(
        "UPDATE", new, decided(**past), authorizer=Everybody(), subresource="approval"
    )
    approved, failed = made["status"]["conditions"]
    assert (approved["lastTransitionTime"], approved["lastUpdateTime"]) == (
        past["lastTransitionTime"],
        NOW,
    )
    assert (failed["lastTransitionTime"], failed["lastUpdateTime"]) == (NOW, NOW)


async def test_nobody_becomes_a_master_by_a_certificate() -> None:
    with pytest.raises(Forbidden, match="system:masters group is not allowed"):
        await admitted("CREATE", request(SIGNER, "dev", "system:masters"), authorizer=Everybody())
    # What others sign with is no business of this server.
    await admitted("CREATE", request("example.org/signer", "system:masters"))


@pytest.mark.parametrize("text", ["", "!", "aGVsbG8=", "A" * 20_000])
async def test_what_is_no_request_is_refused_by_its_field(text: str) -> None:
    with pytest.raises(Invalid) as caught:
        await admitted("CREATE", request(request=text))
    assert caught.value.status()["details"]["causes"][0]["field"] == "spec.request"
