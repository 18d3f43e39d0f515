"""Where a destination has a revision, that counts and not what the workspace has."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.edge import Mailbox
from skerry.api.refs import ObjectRef, namespace_ref
from skerry.logic.fleet.revision.manifest import content_digest
from skerry.logic.fleet.revision.noted import noted_revisions
from skerry.logic.fleet.translation.copies import digest
from skerry.logic.fleet.translation.dirty import CONFIG
from skerry.logic.fleet.translation.held import (
    Assignments,
    Moved,
    content_record,
    revisions_of,
)
from skerry.logic.fleet.translation.sources import record_of, wide
from tests.kit.chain.translator_world import (
    CLUSTERS,
    CONFIG_MAPS,
    NAMESPACES,
    ROLES,
    A,
    B,
    World,
    cluster_object,
)

GO = {"matchLabels": {"go": "yes"}}
NAMED_ROLES = {"apiGroup": ROLES.group, "resources": ["clusterroles"], "resourceNames": ["*"]}
NAMED_SPACES = {"apiGroup": "", "resources": ["namespaces"], "resourceNames": ["n"]}
SPECS: list[dict[str, Any]] = [
    {"namespaceSelector": GO},
    {"namespaceSelector": GO, "nonNamespacedObjects": [NAMED_ROLES]},
    {"namespaceSelector": GO, "nonNamespacedObjects": [NAMED_SPACES]},
]
PAGE = ObjectRef("", *CONFIG_MAPS, "n", "x")


def page(name: str = "x", data: str = "1", **more: Any) -> Any:
    return cluster_object("one", name, "n", data={"k": data}, **more)


def space(go: str = "yes", **labels: str) -> Any:
    return cluster_object("one", "n", labels={"go": go, **labels})


def data(world: World, mailbox: Mailbox = A, name: str = "x") -> Any:
    found = world.objects.get(CONFIG_MAPS, {}).get((CLUSTERS[mailbox], "n", name))
    return None if found is None else found["data"]["k"]


def check(world: World) -> None:
    """Compare every mailbox with the reference, which knows revisions too."""
    expected = world.expected()
    for mailbox, cluster in CLUSTERS.items():
        contents = expected.contents.get(mailbox, {})
        wanted = {item: digest(item.group_resource, obj) for item, obj in contents.items()}
        assert world.copies(mailbox) == wanted
        spec = world.configs.get(cluster, {}).get("spec", {"namespaceScope": {}})
        assert spec == expected.configs.get(mailbox, {"namespaceScope": {}})


def noted(world: World, mailbox: Mailbox = A) -> dict[str, int]:
    found = noted_revisions(world.configs[CLUSTERS[mailbox]]["metadata"])
    return {ref.name: number for ref, number in found.items()}


def held(world: World, **spec: Any) -> ObjectRef:
    """Have one page placed, and revision 1 of it in mailbox A."""
    world.put(NAMESPACES, space())
    world.put(CONFIG_MAPS, page())
    placement = world.place("one", "p", **(spec or {"namespaceSelector": GO}))
    assert world.cut(placement) == 1
    world.slice(placement, (A, "florin"), revisions={A: 1})
    world.reconcile()
    return placement


def test_a_change_of_the_workspace_touches_nothing_that_has_a_revision() -> None:
    world = World()
    placement = held(world)
    world.put(CONFIG_MAPS, page(data="2"))
    assert world.queue == set()
    assert world.cut(placement) == 2
    assert world.reconcile() == []
    world.slice(placement, (A, "florin"), revisions={A: 2})
    world.reconcile()
    assert (data(world), noted(world)) == ("2", {"p": 2})
    world.slice(placement, (A, "florin"), revisions={A: 1})
    world.reconcile()
    assert (data(world), noted(world)) == ("1", {"p": 1})
    check(world)


def test_without_revisions_again_the_workspace_counts() -> None:
    world = World()
    placement = held(world)
    world.put(CONFIG_MAPS, page(data="2"))
    world.remove(NAMESPACES, "one", "n")
    world.slice(placement, (A, "florin"))
    world.reconcile()
    assert world.copies(A) == {}
    assert noted(world) == {}


def test_what_is_gone_stays_and_what_is_new_waits() -> None:
    world = World()
    held(world)
    world.remove(CONFIG_MAPS, "one", "x", "n")
    world.put(CONFIG_MAPS, page("y"))
    world.put(NAMESPACES, space("no"))
    world.handlers.mark(A, [PAGE, ObjectRef("", *CONFIG_MAPS, "n", "y"), namespace_ref("n")])
    world.reconcile()
    assert set(world.copies(A)) == {namespace_ref("n"), PAGE}
    check(world)


def test_a_missing_revision_waits_is_reported_and_a_deletion_by_others_waits_too() -> None:
    world = World()
    placement = held(world)
    before = world.copies(A)
    world.slice(placement, (A, "florin"), revisions={A: 9})
    world.remove(CONFIG_MAPS, "one", "x", "n")
    world.handlers.mark(A, [PAGE, namespace_ref("n")])
    assert world.reconcile() == []
    assert world.copies(A) == before
    reasons = {problem.reason for problem, _ in world.problems.of(placement)}
    assert reasons == {"RevisionMissing"}
    number = world.cut(placement)
    world.slice(placement, (A, "florin"), revisions={A: number})
    world.reconcile()
    assert set(world.copies(A)) == {namespace_ref("n")}
    assert world.problems.of(placement) == {}


def test_a_revision_that_is_removed_under_a_slot_changes_nothing() -> None:
    world = World()
    placement = held(world)
    before = world.copies(A)
    world.handlers.revision_changed(world.revisions.pop(("one", "p-1")), None)
    world.put(CONFIG_MAPS, page(data="2"))
    world.handlers.mark(A, [PAGE])
    assert world.reconcile() == []
    assert world.copies(A) == before
    assert {p.reason for p, _ in world.problems.of(placement)} == {"RevisionMissing"}


def test_a_missing_content_waits_for_itself_and_holds_nothing_else_up() -> None:
    world = World()
    placement = held(world)
    world.put(CONFIG_MAPS, page("y"))
    world.put(CONFIG_MAPS, page(data="2"))
    assert world.cut(placement) == 2
    [name] = [
        each["digest"]
        for each in world.revisions["one", "p-2"]["spec"]["items"]
        if each["name"] == "x"
    ]
    lost = world.contents.pop(("one", name))
    world.put(CONFIG_MAPS, page(data="3"))
    world.tables.revisions.contents._kept.clear()
    world.slice(placement, (A, "florin"), revisions={A: 2})
    world.reconcile()
    assert (data(world), data(world, name="y"), noted(world)) == ("1", "1", {"p": 1})
    assert {p.reason for p, _ in world.problems.of(placement)} == {"RevisionMissing"}
    world.contents["one", name] = lost
    record = content_record("one", PAGE, name, lost)
    assert record is not None
    world.handlers.content_read(("content", "one", name, *PAGE[1:]), record)
    world.reconcile()
    assert (data(world), noted(world)) == ("2", {"p": 2})
    assert world.problems.of(placement) == {}


def test_a_content_that_is_not_what_its_name_says_is_missing() -> None:
    world = World()
    held(world)
    [(_, name)] = [
        key for key, obj in world.contents.items() if obj["kind"] == "Thing" and "data" in obj
    ]
    good = world.contents["one", name]
    assert content_record("one", PAGE, name, good) is not None
    wrong: list[Any] = [{**good, "data": {"k": "other"}}, {}, {"metadata": {}}, {"metadata": None}]
    for bad in wrong:
        assert content_record("one", PAGE, name, bad) is None
    other = ObjectRef("", *CONFIG_MAPS, "n", "y")
    assert content_record("one", other, name, good) is None
    stray = {**good["metadata"], "annotations": {"kcp.io/cluster": "two"}}
    assert content_record("one", PAGE, name, {**good, "metadata": stray}) is None


def test_of_several_holders_the_oldest_source_counts_and_all_report_it() -> None:
    world = World()
    placement = held(world)
    other = world.place("one", "q", namespaceSelector=GO)
    world.put(CONFIG_MAPS, page(data="2"))
    assert world.cut(other) == 1
    world.slice(other, (A, "florin"), revisions={A: 1})
    live = world.place("one", "r", namespaceSelector=GO)
    world.put(CONFIG_MAPS, page(data="3"))
    world.slice(live, (A, "florin"))
    world.reconcile()
    assert data(world) == "1"
    for each in (placement, other, live):
        assert {p.reason for p, _ in world.problems.of(each)} == {"RevisionsDisagree"}
    assert noted(world) == {"p": 1, "q": 1}
    world.slice(placement)
    world.reconcile()
    assert (data(world), noted(world)) == ("2", {"q": 1})


def test_who_holds_a_namespace_as_room_leaves_its_labels_to_others() -> None:
    world = World()
    placement = held(world)
    world.slice(world.place("one", "q", **SPECS[2]), (A, "florin"))
    world.reconcile()
    check(world)
    live = world.objects[NAMESPACES]["mb-a", "", "n"]
    assert live["metadata"]["labels"]["go"] == "yes"
    assert world.problems.of(placement) == {}


def test_a_refused_object_keeps_its_own_revision_from_being_noted_and_no_other() -> None:
    world = World()
    placement = held(world)
    world.put(NAMESPACES, cluster_object("two", "m", labels={"go": "yes"}))
    world.put(CONFIG_MAPS, cluster_object("two", "bad", "m", data={}))
    world.server.refused.add("bad")
    other = world.place("two", "q", namespaceSelector=GO)
    assert world.cut(other) == 1
    world.slice(other, (A, "florin"), revisions={A: 1})
    world.put(CONFIG_MAPS, page(data="2"))
    world.cut(placement)
    world.slice(placement, (A, "florin"), revisions={A: 2})
    world.reconcile()
    assert noted(world) == {"p": 2}


def test_a_syncer_config_that_waits_is_not_marked_over_and_over() -> None:
    world = World()
    placement = held(world)
    world.put(CONFIG_MAPS, page(data="2"))
    world.cut(placement)
    world.slice(placement, (A, "florin"), revisions={A: 2})
    world.restart(wide("", "v1", "secrets"))
    world.reconcile()
    assert (data(world), noted(world)) == ("2", {"p": 1})
    assert world.tables.dirty.holds(A, CONFIG)
    world.sync()
    world.reconcile()
    assert noted(world) == {"p": 2}


def test_a_mailbox_of_several_locations_has_the_revision_of_the_first() -> None:
    ways = [("l2", 7), ("l1", 5), ("l3", 0)]
    entries = [
        {"cluster": "c", "syncTargetUID": "u", "locationName": name, "revision": number}
        for name, number in ways
    ]
    assert revisions_of([{"destinations": entries}]) == {Mailbox("c", "u"): 5}
    assert revisions_of([{"destinations": entries[2:]}, {}]) == {}


def test_assignments_return_what_is_different() -> None:
    found = Assignments()
    one, two = A, B
    placement = ObjectRef("c", "g", "r", "", "p")
    assert not found
    assert found.put(placement, {}) == []
    assert found.put(placement, {one: 1, two: 1}) == [Moved(one, 0, 1), Moved(two, 0, 1)]
    assert found.put(placement, {one: 2, two: 1}) == [Moved(one, 1, 2)]
    assert (list(found), found.of(placement)) == ([placement], {one: 2, two: 1})
    assert found.put(placement, {}) == [Moved(one, 2, 0), Moved(two, 1, 0)]
    assert not found


def test_a_record_of_a_content_is_that_of_its_source() -> None:
    source = page(notes={"edge.kcp.io/customizer": "c"})
    record = record_of(wide("", "v1", "configmaps"), source)
    name = content_digest(PAGE, record.digest)
    found = content_record("one", PAGE, name, record.copy())
    assert found is not None
    assert (found.digest, found.text, found.customizer) == (
        record.digest,
        record.text,
        record.customizer,
    )


_events = st.lists(
    st.one_of(
        st.tuples(st.just("page"), st.sampled_from("xy"), st.sampled_from(["1", "2", "3"])),
        st.tuples(st.just("drop"), st.sampled_from("xy"), st.just("")),
        st.tuples(st.just("space"), st.sampled_from(["yes", "no"]), st.sampled_from(["a", "b"])),
        st.tuples(st.just("role"), st.sampled_from("rs"), st.sampled_from(["1", "2"])),
        st.tuples(st.just("unrole"), st.sampled_from("rs"), st.just("")),
        st.tuples(st.just("customizer"), st.just("c"), st.sampled_from(['"p"', '"q"'])),
        st.tuples(st.just("spec"), st.sampled_from("pq"), st.sampled_from("012")),
        st.tuples(st.just("cut"), st.sampled_from("pq"), st.just("")),
        st.tuples(st.just("assign"), st.sampled_from("pq"), st.sampled_from("0123")),
        st.tuples(st.just("reconcile"), st.just(""), st.just("")),
    ),
    max_size=25,
)


class Play:
    """Two placements of one workspace, cut and assigned at will."""

    def __init__(self) -> None:
        self.world = world = World()
        world.put(NAMESPACES, space())
        self.numbers: dict[str, list[int]] = {"p": [0], "q": [0]}
        self.placements = {name: world.place("one", name, **SPECS[0]) for name in ("p", "q")}
        for placement in self.placements.values():
            world.slice(placement, (A, "florin"), (B, "guilder"))

    def step(self, event: tuple[str, str, str]) -> None:
        world = self.world
        match event:
            case "page", name, text:
                notes = {"edge.kcp.io/customizer": "c"} if name == "y" else {}
                world.put(CONFIG_MAPS, page(name, text, notes=notes))
            case "drop", name, _:
                world.remove(CONFIG_MAPS, "one", name, "n")
            case "space", go, color:
                world.put(NAMESPACES, space(go, color=color))
            case "role", name, text:
                world.put(ROLES, cluster_object("one", name, rules=[text]))
            case "unrole", name, _:
                world.remove(ROLES, "one", name)
            case "customizer", name, text:
                world.customize("one", "n", name, {"path": "$.data.k", "value": text})
            case "spec", name, number:
                world.place("one", name, **SPECS[int(number)])
            case "cut", name, _:
                self.numbers[name].append(world.cut(self.placements[name]))
            case "assign", name, number:
                known = self.numbers[name]
                chosen = known[int(number) % len(known)]
                ways = [(A, "florin"), (B, "guilder")]
                world.slice(self.placements[name], *ways, revisions={A: chosen})
            case _:
                world.reconcile()


@settings(max_examples=60, deadline=None)
@given(_events)
def test_whatever_happens_mailboxes_are_what_the_reference_computes_from_revisions(
    events: list[tuple[str, str, str]],
) -> None:
    play = Play()
    for event in events:
        play.step(event)
    play.world.reconcile()
    check(play.world)
    assert play.world.tables.dirty.waiting == 0


@settings(max_examples=25, deadline=None)
@given(_events)
def test_with_every_slot_at_the_newest_revision_mailboxes_are_what_the_workspace_has(
    events: list[tuple[str, str, str]],
) -> None:
    play = Play()
    for event in events:
        play.step(event)
    world = play.world
    for placement in play.placements.values():
        number = world.cut(placement)
        world.slice(placement, (A, "florin"), (B, "guilder"), revisions={A: number, B: number})
    world.reconcile()
    for placement in play.placements.values():
        world.slice(placement, (A, "florin"), (B, "guilder"))
    live = world.expected()
    for mailbox in (A, B):
        wanted = {i: digest(i.group_resource, o) for i, o in live.contents[mailbox].items()}
        assert world.copies(mailbox) == wanted
