"""What has to be asked of etcd, and that every answer is what etcd holds at that moment."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from skerry.store import etcd_messages as messages
from skerry.store.base import Entry, Event, StoreError
from skerry.store.etcd_cache import Outcome, Question, ReadCache
from skerry.store.etcd_events import events_of
from skerry.store.etcd_layout import FACTOR, Layout, Numbering, packed, packed_count
from skerry.store.etcd_messages import Change, KeyValue
from tests.kit.store.tiny_etcd import Happened, TinyEtcd

LAYOUT = Layout("/t/")
NUMBERING = Numbering(3)
MARK = bytes(8)
KEYS = ("/a", "/b", "/c", "/d")


def cache_of(*, max_operations: int = 128, max_bytes: int = 1 << 20) -> ReadCache:
    return ReadCache(LAYOUT, NUMBERING, max_operations=max_operations, max_bytes=max_bytes)


def write(etcd: TinyEtcd, **values: bytes | None) -> None:
    """Commit as the store does."""
    kept = {k: v for k, v in values.items() if v is not None or LAYOUT.key(f"/{k}") in etcd.keys}
    changes: list[tuple[bytes, bytes | None]] = [
        (LAYOUT.key(f"/{name}"), None if value is None else packed(value, position, MARK))
        for position, (name, value) in enumerate(kept.items())
    ]
    etcd.write([*changes, (LAYOUT.last, packed_count(len(changes)))])


def held(etcd: TinyEtcd, key: str) -> Entry | None:
    stored = etcd.keys.get(LAYOUT.key(key))
    if stored is None:
        return None
    return NUMBERING.entry(KeyValue(b"", stored.value, stored.revision), key)


def answered(etcd: TinyEtcd, question: Question) -> messages.Transacted:
    return messages.transacted(etcd.txn(question.request))


def read(etcd: TinyEtcd, cache: ReadCache, *keys: str) -> dict[str, Outcome]:
    question = cache.question(keys)
    outcomes = question.outcomes(answered(etcd, question))
    cache.learn(outcomes)
    return outcomes


def streamed(happened: list[Happened]) -> list[Event]:
    changes = [
        Change(
            one.value is None,
            KeyValue(one.key, one.value or b"", one.revision),
            None if one.previous is None else KeyValue(one.key, *one.previous),
        )
        for one in happened
    ]
    return events_of(LAYOUT, NUMBERING, changes)


def test_a_value_that_still_stands_is_not_sent_again() -> None:
    etcd, cache = TinyEtcd(), cache_of()
    write(etcd, a=b"1", b=b"2")
    assert read(etcd, cache, "/a", "/b", "/c") == {
        "/a": held(etcd, "/a"),
        "/b": held(etcd, "/b"),
        "/c": None,
    }
    question = cache.question(["/a", "/b"])
    answer = answered(etcd, question)
    assert answer.succeeded
    assert answer.ranges == []
    assert question.outcomes(answer) == {"/a": held(etcd, "/a"), "/b": held(etcd, "/b")}


def test_a_value_that_the_stream_brought_is_not_sent_again() -> None:
    etcd, cache = TinyEtcd(), cache_of()
    write(etcd, a=b"1")
    read(etcd, cache, "/a")
    begun = len(etcd.log)
    write(etcd, a=b"2")
    cache.follow(streamed(etcd.log[begun:]))
    question = cache.question(["/a"])
    assert question.known == {"/a": held(etcd, "/a")}
    assert answered(etcd, question).succeeded


def test_the_stream_fills_no_cache_with_what_nobody_read() -> None:
    etcd, cache = TinyEtcd(), cache_of()
    write(etcd, a=b"1")
    cache.follow(streamed(etcd.log))
    assert cache.question(["/a"]).known == {}


def test_an_answer_that_arrives_late_does_not_replace_what_the_stream_brought() -> None:
    etcd, cache = TinyEtcd(), cache_of()
    write(etcd, a=b"1")
    read(etcd, cache, "/a")
    early = cache.question(["/a"])
    answer = answered(etcd, early)
    begun = len(etcd.log)
    write(etcd, a=b"2")
    cache.follow(streamed(etcd.log[begun:]))
    cache.learn(early.outcomes(answer))
    assert cache.question(["/a"]).known == {"/a": held(etcd, "/a")}


def test_a_large_value_is_read_anew_each_time() -> None:
    etcd, cache = TinyEtcd(), cache_of()
    write(etcd, a=b"1")
    read(etcd, cache, "/a")
    write(etcd, a=bytes(70_000))
    read(etcd, cache, "/a")
    assert cache.question(["/a"]).known == {}
    assert read(etcd, cache, "/a") == {"/a": held(etcd, "/a")}


def test_the_value_used_longest_ago_goes_first() -> None:
    etcd, cache = TinyEtcd(), cache_of(max_bytes=1_100)
    write(etcd, a=b"1", b=b"1", c=b"1")
    for key in ("/a", "/b", "/a", "/c"):
        read(etcd, cache, key)
    assert set(cache.question(KEYS).known) == {"/a", "/c"}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["learn", "follow", "ask", "forget"]),
            st.sampled_from([name * length for name in KEYS for length in (1, 40)]),
            st.integers(0, 70_000) | st.integers(0, 40),
        ),
        max_size=60,
    )
)
def test_whatever_is_read_and_streamed_memory_stays_within_its_budget(
    steps: list[tuple[str, str, int]],
) -> None:
    cache = cache_of(max_bytes=80_000)
    for number, (step, key, size) in enumerate(steps, start=1):
        if step == "learn":
            cache.learn({key: Entry(key, bytes(size), number)})
        elif step == "follow":
            cache.follow([Event(number, key, bytes(size), None, 0)])
        elif step == "ask":
            # The condition of a value that is known is remembered with it.
            cache.question([key])
        else:
            cache.learn({key: None})
        parts = [
            part
            for one in cache._held.values()
            for part in (one, one.part, one.entry, one.entry.key, one.entry.value)
        ]
        assert sum(map(sys.getsizeof, parts)) <= 80_000


def test_a_question_has_no_more_keys_than_etcd_takes() -> None:
    etcd, cache = TinyEtcd(), cache_of(max_operations=3)
    write(etcd, a=b"1", b=b"1", c=b"1", d=b"1")
    assert list(read(etcd, cache, *KEYS)) == ["/a", "/b", "/c"]
    assert cache.question(KEYS).keys == ["/a", "/b", "/c"]


def test_a_question_asks_for_few_values_of_unknown_length() -> None:
    etcd, cache = TinyEtcd(), cache_of()
    write(etcd, a=b"1")
    read(etcd, cache, "/a")
    keys = ["/a", *(f"/new/{number}" for number in range(50))]
    assert cache.question(keys).keys == keys[:33]


def test_a_long_name_goes_alone() -> None:
    cache = cache_of()
    long = "/" + "x" * (2 << 20)
    assert cache.question([long, "/a"]).keys == [long]
    assert cache.question(["/a", long]).keys == ["/a"]


def test_a_value_that_is_not_ours_fails_nobody_else() -> None:
    etcd, cache = TinyEtcd(), cache_of()
    write(etcd, a=b"1")
    etcd.write([(LAYOUT.key("/b"), b"foreign")])
    outcomes = read(etcd, cache, "/a", "/b")
    assert outcomes["/a"] == held(etcd, "/a")
    assert isinstance(outcomes["/b"], StoreError)


def test_what_was_deleted_is_forgotten() -> None:
    etcd, cache = TinyEtcd(), cache_of()
    write(etcd, a=b"1", b=b"1")
    read(etcd, cache, "/a", "/b")
    begun = len(etcd.log)
    write(etcd, a=None, b=None)
    cache.follow(streamed(etcd.log[begun:])[:1])
    assert set(cache.question(["/a", "/b"]).known) == {"/b"}
    assert read(etcd, cache, "/b") == {"/b": None}
    assert cache.question(["/b"]).known == {}


@dataclass
class Sent:
    """A question on its way: etcd answers it at some moment, and the answer arrives later."""

    server: int
    question: Question
    floor: dict[str, Entry | None]
    answer: messages.Transacted | None = None
    truth: dict[str, Entry | None] | None = None


class Servers(RuleBasedStateMachine):
    """Two servers over one etcd; writes, questions and streams interleave in any way.

    The property: a read shows what etcd held at a moment after the read began. So it shows every
    write that was acknowledged before, by whichever server, and a later read shows nothing older.
    """

    def __init__(self) -> None:
        super().__init__()
        self.etcd = TinyEtcd()
        # So small that values have to make room for each other.
        self.caches = [cache_of(max_bytes=1_700) for _ in range(2)]
        self.followed = [0, 0]
        self.sent: list[Sent] = []

    @rule(
        values=st.dictionaries(
            st.sampled_from([key[1:] for key in KEYS]),
            st.none() | st.binary(max_size=3),
            min_size=1,
        )
    )
    def a_server_writes(self, values: dict[str, bytes | None]) -> None:
        write(self.etcd, **values)

    @rule(server=st.integers(0, 1), keys=st.lists(st.sampled_from(KEYS), min_size=1, unique=True))
    def reads_begin(self, server: int, keys: list[str]) -> None:
        question = self.caches[server].question(keys)
        floor = {key: held(self.etcd, key) for key in question.keys}
        self.sent.append(Sent(server, question, floor))

    @precondition(lambda self: any(sent.answer is None for sent in self.sent))
    @rule(which=st.integers(0, 5))
    def etcd_answers(self, which: int) -> None:
        unanswered = [sent for sent in self.sent if sent.answer is None]
        sent = unanswered[which % len(unanswered)]
        sent.answer = answered(self.etcd, sent.question)
        sent.truth = {key: held(self.etcd, key) for key in sent.question.keys}

    @precondition(lambda self: any(sent.answer is not None for sent in self.sent))
    @rule(which=st.integers(0, 5))
    def an_answer_arrives(self, which: int) -> None:
        ready = [sent for sent in self.sent if sent.answer is not None]
        sent = ready[which % len(ready)]
        self.sent.remove(sent)
        assert sent.answer is not None
        outcomes = sent.question.outcomes(sent.answer)
        assert outcomes == sent.truth
        for key, before in sent.floor.items():
            found = outcomes[key]
            if isinstance(found, Entry) and before is not None:
                assert found.revision >= before.revision
        self.caches[sent.server].learn(outcomes)

    @rule(server=st.integers(0, 1), count=st.integers(1, 4), lost=st.booleans())
    def the_stream_goes_on(self, server: int, count: int, lost: bool) -> None:
        """Show whole revisions, or skip them as a compaction does."""
        log, start = self.etcd.log, self.followed[server]
        revisions = sorted({one.revision for one in log if one.revision > start})[:count]
        if not revisions:
            return
        self.followed[server] = revisions[-1]
        if not lost:
            shown = [one for one in log if revisions[0] <= one.revision <= revisions[-1]]
            self.caches[server].follow(streamed(shown))

    @invariant()
    def what_is_known_was_written_so(self) -> None:
        for cache in self.caches:
            for key, entry in cache.question(KEYS).known.items():
                at = NUMBERING.etcd_revision(entry.revision)
                values = [one.value for one in self.etcd.log
                          if one.revision == at and one.key == LAYOUT.key(key)]  # fmt: skip
                position = entry.revision % FACTOR
                assert values == [packed(entry.value, position, MARK)]


TestServers = Servers.TestCase
