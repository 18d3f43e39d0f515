"""Bootstrap credentials: well formed, for one mailbox, for a while, and never changed."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Any

import pytest

from skerry.api.edge import PROJECTED
from skerry.api.edge_identity import (
    APPROVED,
    BOOTSTRAP_GROUPS,
    BOOTSTRAP_TYPE,
    EXPIRATION,
    KEY_DIGEST,
    SYNC_TARGET,
    TOKEN_HASH,
    TOKEN_ID,
    BootstrapToken,
    bootstrap_secret,
    bootstrap_secret_name,
)
from skerry.api.errors import ApiError, Forbidden, Invalid, TooManyRequests, Unauthorized
from skerry.api.keys import ObjectKey
from skerry.api.objects import Object
from skerry.kit.timestamps import rfc3339
from skerry.server.access import Authorizer
from skerry.server.admission.operation import Operation, Verb
from skerry.server.workspaces.bootstrap_credentials import (
    MAX_CREDENTIALS,
    MAX_LIFETIME,
    REDEEMED_LIFETIME,
    BootstrapSecrets,
    BootstrapTokens,
    secret_key_of,
)
from skerry.store.base import Write
from tests.kit.machinery.objects import resource
from tests.kit.server.calls import call_of
from tests.kit.server.clock import HandClock
from tests.kit.server.harness import Everybody
from tests.kit.server.mailboxes import BOX, INVENTORY, TARGET, MailboxPlace, mailbox_place
from tests.kit.server.refusing import Except

TOKEN = BootstrapToken("abcdef", "0" * 32)
CLOCK = HandClock()
HOUR = timedelta(hours=1)


def secret(
    token: BootstrapToken = TOKEN, ends: timedelta = HOUR, *, is_approved: bool = False, **data: str
) -> Object:
    expiration = rfc3339(CLOCK.now() + ends)
    made = bootstrap_secret(token, sync_target=TARGET, expiration=expiration, approved=is_approved)
    made["metadata"].setdefault("uid", "u")
    for name, text in data.items():
        made.setdefault("data", {})[name.replace("_", "-")] = base64.b64encode(
            text.encode()
        ).decode()
    return made


def key(token: BootstrapToken = TOKEN, cluster: str = BOX) -> ObjectKey:
    return ObjectKey("", "secrets", cluster, "default", bootstrap_secret_name(token.id))


async def admitted(
    obj: Object,
    verb: Verb = "CREATE",
    old: Object | None = None,
    *,
    cluster: str = BOX,
    namespace: str = "default",
    authorizer: Authorizer | None = None,
    place: MailboxPlace | None = None,
) -> list[Write]:
    place = place or await mailbox_place()
    call = call_of(resource("secrets"), cluster=cluster, namespace=namespace)
    operation = Operation(call, verb, obj, old)
    everybody = authorizer or Everybody()
    rule = BootstrapSecrets(place.mailboxes, everybody, place.store, CLOCK)
    await rule.admit(operation)
    return operation.writes


async def fields(obj: Object, **more: Any) -> set[str]:
    with pytest.raises(Invalid) as caught:
        await admitted(obj, **more)
    return {cause["field"] for cause in caught.value.status()["details"]["causes"]}


# -- making them ---------------------------------------------------------------------------------


async def test_a_credential_of_the_right_form_is_made_in_the_mailbox_of_its_edge_only() -> None:
    assert await admitted(secret()) == []
    assert await fields(secret(), cluster=INVENTORY) == {"type"}
    assert await fields(secret(), namespace="other") == {"type"}
    # Any other Secret is nobody's concern here.
    await admitted({**secret(), "type": "Opaque"}, cluster=INVENTORY)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"token_id": "Not Good"}, TOKEN_ID),
        ({"token_hash": "short"}, TOKEN_HASH),
        ({"approved": "yes"}, APPROVED),
        ({"sync_target": "another"}, SYNC_TARGET),
        ({"expiration": "soon"}, EXPIRATION),
        ({"expiration": "2029-12-31T00:00:00Z"}, EXPIRATION),
        ({"expiration": rfc3339(CLOCK.now() + MAX_LIFETIME + HOUR)}, EXPIRATION),
        ({"key_digest": "0" * 64}, KEY_DIGEST),
    ],
)
async def test_what_is_wrong_with_a_credential_is_said_by_its_field(
    change: Any, field: str
) -> None:
    assert f"data[{field}]" in await fields(secret(**change))


async def test_no_digest_is_repeated_in_a_refusal() -> None:
    with pytest.raises(Invalid) as caught:
        await admitted(secret(token_hash="something-secret"))
    assert "something-secret" not in str(caught.value.status())


async def test_a_copy_that_passes_through_a_mailbox_is_no_credential() -> None:
    copy = secret()
    copy["metadata"]["labels"] = {PROJECTED: "yes"}
    assert await fields(copy) == {"type"}


async def test_one_that_is_approved_from_the_start_is_for_who_may_approve() -> None:
    nobody = Except("approve signers")
    await admitted(secret(), authorizer=nobody)
    with pytest.raises(Forbidden, match="approve"):
        await admitted(secret(is_approved=True), authorizer=nobody)
    await admitted(secret(is_approved=True))


async def test_a_credential_is_not_changed_once_it_is_made() -> None:
    assert await fields(secret(approved="true"), verb="UPDATE", old=secret()) == {"data"}
    await admitted(secret(), "UPDATE", secret())
    await admitted(secret(), "DELETE")


async def test_what_ended_is_deleted_with_the_next_and_too_many_are_refused() -> None:
    place = await mailbox_place()
    for number in range(MAX_CREDENTIALS):
        token = BootstrapToken(f"live{number:02}", "0" * 32)
        await place.put(key(token), secret(token))
    ended = BootstrapToken("ended1", "0" * 32)
    await place.put(key(ended), secret(ended, -HOUR))
    with pytest.raises(TooManyRequests):
        await admitted(secret(), place=place)
    await place.store.commit([Write(key(BootstrapToken("live00", "")).path(), None)])
    assert [write.key for write in await admitted(secret(), place=place)] == [key(ended).path()]


# -- using them ----------------------------------------------------------------------------------


async def used(
    stored: Object, token: str = TOKEN.bearer, cluster: str = BOX, place: MailboxPlace | None = None
) -> Any:
    place = place or await mailbox_place()
    await place.put(key(), stored)
    return await BootstrapTokens(place.store, place.mailboxes, CLOCK).user(token, cluster)


async def test_a_credential_makes_its_bearer_one_who_may_ask_for_a_certificate() -> None:
    user = await used(secret())
    assert (user.groups, user.home) == (BOOTSTRAP_GROUPS, BOX)
    assert secret_key_of(user) == key().path()


@pytest.mark.parametrize(
    "options",
    [
        {"stored": secret(), "token": BootstrapToken("abcdef", "1" * 32).bearer},
        {"stored": secret(), "token": BootstrapToken("fedcba", "0" * 32).bearer},
        {"stored": secret(), "token": "nonsense"},
        {"stored": secret(), "cluster": INVENTORY},
        {"stored": secret(ends=-HOUR)},
        {"stored": secret(expiration="soon")},
        {"stored": secret(token_id="other1")},
        {"stored": secret(token_hash="")},
        {"stored": {**secret(), "type": "Opaque"}},
        {"stored": {**secret(), "metadata": {"uid": "u", "labels": {PROJECTED: "yes"}}}},
    ],
    ids=["wrong secret", "no such", "nonsense", "other cluster", "ended", "no end", "other id",
         "no digest", "other type", "a copy"],
)  # fmt: skip
async def test_what_does_not_hold_is_refused_without_saying_why(options: Any) -> None:
    with pytest.raises(ApiError) as caught:
        await used(**options)
    assert isinstance(caught.value, Unauthorized)


async def test_a_redeemed_credential_counts_for_its_key_a_while_longer() -> None:
    redeemed = secret(ends=-HOUR, key_digest="0" * 64)
    assert (await used(redeemed)).home == BOX
    with pytest.raises(Unauthorized):
        await used(secret(ends=-(REDEEMED_LIFETIME + HOUR), key_digest="0" * 64))


async def test_without_its_sync_target_a_mailbox_lets_nobody_in() -> None:
    place = await mailbox_place()
    place.mailboxes._reset()
    with pytest.raises(Unauthorized):
        await used(secret(), place=place)


def test_the_type_is_the_one_that_is_documented() -> None:
    assert secret()["type"] == BOOTSTRAP_TYPE
