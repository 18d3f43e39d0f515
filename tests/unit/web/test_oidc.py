"""Sign-ins at an issuer: kept by the browser that began, and ended once."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from skerry.api.errors import TooManyRequests, Unauthorized
from skerry.kit.clock import LoopClock
from skerry.kit.ids import SeededIds
from skerry.logic.machinery.oidc_login import MAX_CODE_LENGTH, Begun
from skerry.server.user import User
from skerry.web.oidc import LIFETIME_SECONDS, OidcSignIn
from skerry.web.sessions import Credential

pytestmark = pytest.mark.looptime


@dataclass(frozen=True)
class Held:
    async def user(self) -> User:
        return User("alice")

    def packed(self) -> bytes:
        return b""


@dataclass
class Played:
    """An issuer that takes any code."""

    name: str = "login.example"
    begun: list[Begun] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)

    async def address(self, begun: Begun) -> str:
        self.begun.append(begun)
        return "https://login.example/authorize"

    async def redeemed(self, begun: Begun, code: str) -> tuple[User, Credential]:
        self.codes.append(code)
        return User("alice"), Held()


def world(seed: int = 1) -> tuple[OidcSignIn, Played]:
    issuer = Played()
    return OidcSignIn(issuer, LoopClock(), SeededIds(seed)), issuer


async def refused(signing: OidcSignIn, cookie: str, state: str, code: str = "c") -> bool:
    with pytest.raises(Unauthorized, match="sign in again"):
        await signing.finish(cookie, state, code)
    return True


async def test_a_browser_that_began_ends_once_and_comes_back_to_the_page_it_left() -> None:
    signing, issuer = world()
    _, cookie = await signing.begin("hub.example:8443")
    (begun,) = issuer.begun
    assert begun.redirect == "https://hub.example:8443/console/login"
    assert len({begun.state, begun.nonce, begun.verifier}) == 3
    # What the browser keeps tells it nothing.
    assert not any(each in cookie for each in (begun.state, begun.nonce, begun.verifier))
    assert (await signing.finish(cookie, begun.state, "c"))[0].name == "alice"
    assert await refused(signing, cookie, begun.state)
    assert issuer.codes == ["c"]


async def test_what_was_not_begun_here_reaches_the_issuer_never() -> None:
    signing, issuer = world()
    other, elsewhere = world(2)
    _, cookie = await signing.begin("hub")
    _, second = await signing.begin("hub")
    _, foreign = await other.begin("hub")
    state = issuer.begun[0].state
    for shown in ("", "x", "A" * 400, "A" * 4000, "é", foreign, second, cookie[:-2], cookie + "A"):
        assert await refused(signing, shown, state)
    for given in ("", "x", issuer.begun[1].state, elsewhere.begun[0].state):
        assert await refused(signing, cookie, given)
    for code in ("", "c" * (MAX_CODE_LENGTH + 1)):
        assert await refused(signing, cookie, state, code)
    assert issuer.codes == []
    await signing.finish(cookie, state, "c")


async def test_a_sign_in_lasts_its_time() -> None:
    signing, issuer = world()
    _, cookie = await signing.begin("hub")
    await LoopClock().sleep(LIFETIME_SECONDS)
    assert await refused(signing, cookie, issuer.begun[0].state)


async def test_the_issuer_is_not_asked_about_more_codes_than_people_have() -> None:
    signing, issuer = world()
    for _ in range(50):
        _, cookie = await signing.begin("hub")
        await signing.finish(cookie, issuer.begun[-1].state, "c")
    _, cookie = await signing.begin("hub")
    with pytest.raises(TooManyRequests):
        await signing.finish(cookie, issuer.begun[-1].state, "c")
    assert len(issuer.codes) == 50
    # Those who come later are let in again, and what has ended is not remembered for ever.
    await LoopClock().sleep(LIFETIME_SECONDS)
    _, cookie = await signing.begin("hub")
    await signing.finish(cookie, issuer.begun[-1].state, "c")
    assert len(signing._spent) == 1
