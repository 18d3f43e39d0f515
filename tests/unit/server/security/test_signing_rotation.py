"""Keys that sign: the new one as soon as it is wanted, the old one accepted until it is retired."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from skerry.api.keys import PLAIN
from skerry.kit.ids import SeededIds
from skerry.logic.machinery.key_rotation import (
    RotationRefused,
    ServerRecord,
    SigningRecord,
    record_key,
)
from skerry.server.security.encryption_start import KeyMismatch
from skerry.server.security.signing_rotation import Authorities, TokenKeys, signing_record
from skerry.server.security.tokens import (
    ServiceAccountTokens,
    TokenError,
    TokenRequest,
    new_signing_key,
    read_signing_keys,
)
from skerry.store.base import Write
from skerry.store.memory import MemoryStore
from tests.kit.server.accounts import Objects
from tests.kit.server.clock import HandClock

ROBOT = Objects(("serviceaccounts", "ns", "robot", "u1"))
REQUEST = TokenRequest("ns", "robot", "u1")


class Place:
    """A server with a file of signing keys."""

    def __init__(self, folder: Path, record: SigningRecord | None = None) -> None:
        self.file = folder / "sa.key"
        if not self.file.exists():
            self.file.write_bytes(new_signing_key())
        self.store = MemoryStore("test")
        keys = read_signing_keys(self.file)
        self.tokens = ServiceAccountTokens(keys[0], ROBOT.lookup, HandClock(), SeededIds(1))
        self.changes = 0
        self.keys = TokenKeys(self.store, record, self.file, self.tokens, self._changed)

    def _changed(self) -> None:
        self.changes += 1

    def add(self) -> str:
        """Add a key to the file; return its name."""
        self.file.write_bytes(self.file.read_bytes() + new_signing_key())
        self.keys.reload()
        return list(self.keys.known)[-1]

    def servers(self) -> list[ServerRecord]:
        return [ServerRecord("one", {"signing": self.keys.known}, {"signing": self.keys.current})]

    async def accepts(self, token: str) -> bool:
        try:
            await self.tokens.validate(token, PLAIN)
        except TokenError:
            return False
        return True


async def test_tokens_of_both_keys_are_accepted_until_the_old_one_is_retired(
    tmp_path: Path,
) -> None:
    place = Place(tmp_path)
    old = place.keys.current
    before, _ = place.tokens.issue(REQUEST)
    new = place.add()
    assert place.keys.current == old, "a key that was added does not sign yet"
    assert place.keys.status(place.servers())["pending"] == [new]
    await place.keys.use(new, place.servers())
    after, _ = place.tokens.issue(REQUEST)
    assert place.keys.current == new
    assert await place.accepts(before)
    assert await place.accepts(after)
    assert place.changes == 0
    await place.keys.drop_old(place.servers())
    assert not await place.accepts(before)
    assert await place.accepts(after)
    assert place.changes == 1, "whoever remembers tokens is notified"
    assert place.keys.status(place.servers())["retired"] == [old]


async def test_a_key_that_somebody_lacks_is_not_used(tmp_path: Path) -> None:
    place = Place(tmp_path)
    new = place.add()
    behind = ServerRecord("two", {"signing": {}}, {"signing": ""})
    with pytest.raises(RotationRefused, match="two"):
        await place.keys.use(new, [*place.servers(), behind])
    with pytest.raises(RotationRefused, match="no signing key"):
        await place.keys.use("nobodys", place.servers())


async def test_what_another_server_retired_is_accepted_no_more(tmp_path: Path) -> None:
    place = Place(tmp_path)
    old, new = place.keys.current, place.add()
    token, _ = place.tokens.issue(REQUEST)
    place.keys.follow(msgspec.json.encode(SigningRecord(new, retired=(old,))))
    assert place.keys.current == new
    assert not await place.accepts(token)


async def test_a_record_that_retires_every_key_of_a_file_changes_nothing(tmp_path: Path) -> None:
    place = Place(tmp_path)
    current = place.keys.current
    token, _ = place.tokens.issue(REQUEST)
    place.keys.follow(msgspec.json.encode(SigningRecord("elsewhere", retired=(current,))))
    assert place.keys.current == current
    assert await place.accepts(token)
    with pytest.raises(KeyMismatch, match="every key in it is retired"):
        place.keys.reload()


async def test_a_file_without_keys_is_refused_and_the_keys_stay(tmp_path: Path) -> None:
    place = Place(tmp_path)
    current = place.keys.current
    place.file.write_bytes(b"nothing")
    with pytest.raises(KeyMismatch):
        place.keys.reload()
    assert place.keys.current == current


# -- starting ------------------------------------------------------------------------------------


async def test_a_server_without_the_key_in_use_does_not_sign_beside_others(tmp_path: Path) -> None:
    store = MemoryStore("test")
    assert await signing_record(store, "signing", ["a"], tmp_path, alone=False) is None
    record = SigningRecord("a")
    await store.commit([Write(record_key("signing"), msgspec.json.encode(record))])
    assert await signing_record(store, "signing", ["a", "b"], tmp_path, alone=False) == record
    with pytest.raises(KeyMismatch, match="copy the folder"):
        await signing_record(store, "signing", ["b"], tmp_path, alone=False)
    # One that is alone had its keys exchanged by hand.
    assert await signing_record(store, "signing", ["b"], tmp_path, alone=True) is None
    assert await store.get(record_key("signing")) is None


# -- authorities ---------------------------------------------------------------------------------


async def test_an_authority_is_known_by_its_name_and_changes_are_notified_once(
    tmp_path: Path,
) -> None:
    made = Authorities(MemoryStore("test"), None, tmp_path, ["hub.example"], HandClock())
    notified: list[str] = []
    made.listeners.append(lambda: notified.append(made.current))
    assert list(made.known) == [made.current]
    assert "BEGIN CERTIFICATE" in made.bundle()
    assert made.bundle() == made.client_bundle()
    made.reload()
    assert notified == [], "nothing changed"
    with pytest.raises(RotationRefused, match="no authority key"):
        await made.use("nobodys", [])


async def test_authorities_of_clients_vouch_for_clients_and_for_nothing_else(
    tmp_path: Path,
) -> None:
    other = Authorities(MemoryStore("other"), None, tmp_path / "other", ["x"], HandClock())
    clients = tmp_path / "clients.crt"
    clients.write_text(other.bundle())
    made = Authorities(
        MemoryStore("test"), None, tmp_path / "own", ["x"], HandClock(), clients=clients
    )
    assert len(made.of_clients) == 2
    assert other.bundle() in made.client_bundle()
    assert other.bundle() not in made.bundle()
    assert made.of_proxies == ()
    assert clients in made.files
    notified: list[int] = []
    made.listeners.append(lambda: notified.append(1))
    clients.write_text(made.pki.bundle.decode())
    made.reload()
    assert notified == [1]
    assert other.bundle() not in made.client_bundle()
