"""Whether the hub that answers is the hub we know."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from skerry.edge.syncer.tables.journal import Journal
from skerry.edge.syncer.tables.store_identity import HEADER, Trust, WitnessTransport
from skerry.edge.syncer.tables.sync_records import SyncRecords
from skerry.runtime.transport import NO_HEADERS, Answer
from tests.kit.answering import AnsweringTransport
from tests.kit.chain.inline import inline


class Silent(AnsweringTransport):
    """A transport nobody asks anything of."""

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        raise AssertionError(f"unexpected {method} {path}")


class Hub:
    """A trust on a journal, and how often it changed."""

    def __init__(self, folder: Path) -> None:
        self.records = SyncRecords(Journal(folder / "journal", offload=inline))
        self.changes = 0
        self.trust = self.session()

    def session(self) -> Trust:
        self.trust = Trust(self.records)
        self.trust.changed.connect(self._changed)
        return self.trust

    def _changed(self) -> None:
        self.changes += 1


def test_the_first_store_ever_met_is_trusted_and_remembered(tmp_path: Path) -> None:
    hub = Hub(tmp_path)
    assert not hub.trust.trusted
    hub.trust.saw_header("a")
    assert hub.trust.trusted
    assert hub.session().known == "a"
    assert not hub.trust.trusted, "nobody has answered yet"


def test_another_store_is_a_question_until_a_person_accepts_it(tmp_path: Path) -> None:
    hub = Hub(tmp_path)
    hub.trust.saw_header("a")
    assert hub.trust.question("florin") == ""
    hub.trust.saw_header("b")
    assert not hub.trust.trusted
    question = hub.trust.question("florin")
    assert "edge.kcp.io/accept-store-identity=b" in question
    assert "skerry edge accept-store florin" in question
    before = hub.changes
    hub.trust.accept()
    assert hub.trust.trusted
    assert hub.changes == before + 1
    assert hub.session().known == "b"


def test_the_same_store_again_is_no_news(tmp_path: Path) -> None:
    hub = Hub(tmp_path)
    hub.trust.saw_header("a")
    before = hub.changes
    hub.trust.saw_header("a")
    hub.trust.accept()
    hub.trust.saw_header("")
    assert hub.changes == before


def test_a_hub_without_store_names_is_known_by_its_syncer_config(tmp_path: Path) -> None:
    hub = Hub(tmp_path)
    hub.trust.saw_config("uid-1")
    assert hub.trust.current == "config:uid-1"
    assert hub.trust.trusted


def test_the_syncer_config_says_nothing_where_stores_have_names(tmp_path: Path) -> None:
    hub = Hub(tmp_path)
    hub.trust.saw_header("a")
    hub.trust.saw_config("uid-2")
    assert hub.trust.current == "a"


def test_answers_are_reported_to_the_newest_session_alone() -> None:
    transport = WitnessTransport(Silent())
    transport.seen({HEADER: "lost"})
    old, new = list[str](), list[str]()
    transport.report_to(old.append)
    transport.seen({HEADER: "a"})
    transport.report_to(new.append)
    transport.seen({HEADER: "b"})
    transport.seen({})
    assert (old, new) == (["a"], ["b"])
