"""Records of earlier versions open as they were written, and writing them again changes nothing."""

from __future__ import annotations

from pathlib import Path

from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.edge.syncer.tables.journal import Journal
from skerry.edge.syncer.tables.sync_records import SyncRecords
from skerry.logic.fleet.syncing.difference import Observed, difference
from skerry.logic.fleet.syncing.evidence import Evidence
from skerry.logic.fleet.syncing.present import present
from skerry.logic.fleet.syncing.recorded import placed_key, released_key, upsynced_key
from skerry.logic.fleet.syncing.wanted import Desired
from tests.kit.chain.inline import inline

PAGE = ObjectRef("", "", "configmaps", "shop", "page")
WEB = ObjectRef("", "apps", "deployments", "shop", "web")
EVENT = ObjectRef("", "", "events", "shop", "e")
LEFT = ObjectRef("", "", "secrets", "shop", "left")

# As the version before records had these names wrote it, byte by byte.
EARLIER = (
    '4a6d8ef7 ["placed/configmaps/shop/page",{"store":"store-a","config_revision":40,"edg'
    'e_uid":"e1","applied":"fa24f1263789c409a71b7e38","ours":"bf95c6a5131b2464818eb6ee","'
    'created":true,"desired":{"version":"v1","content":{"apiVersion":"v1","kind":"ConfigM'
    'ap","metadata":{"name":"page","namespace":"shop","labels":{"app":"web"},"annotations'
    '":{"mine":"yes"}},"data":{"index.html":"hello"}},"uid":"m1","revision":41,"options":'
    '{"create_only":false,"orphan":true,"adopt":false,"recreate":false}}}]\n'
    'f9cbf119 ["placed/deployments.apps/shop/web",{"store":"store-a","config_revision":40'
    ',"edge_uid":"","applied":"","ours":"","created":true,"desired":{"version":"v1","cont'
    'ent":{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace'
    '":"shop"}},"uid":"m2","revision":42,"options":{"create_only":false,"orphan":false,"a'
    'dopt":false,"recreate":false}}}]\n'
    '849aa7c7 ["raised/events/shop/e",{"version":"v1","mailbox_uid":"r1","content":"c1","'
    'status":"s1"}]\n'
    '67697b68 ["released/secrets/shop/left","e9"]\n'
    '749ef0ee ["meta/store","store-a"]\n'
    'fc28340e ["meta/config",{"specs":[{"namespaceScope":{"namespaces":["shop"],"resource'
    's":[{"group":"","resource":"configmaps","apiVersion":"v1"}]}}],"revision":40}]\n'
)
COPY: Object = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {
        "name": "page",
        "namespace": "shop",
        "uid": "m1",
        "resourceVersion": "41",
        "labels": {"edge.kcp.io/projected": "yes", "app": "web"},
        "annotations": {"edge.kcp.io/orphan-on-delete": "true", "mine": "yes"},
    },
    "data": {"index.html": "hello"},
}
AT_THE_EDGE: Object = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {
        "name": "page",
        "namespace": "shop",
        "uid": "e1",
        "resourceVersion": "7",
        "managedFields": [
            {
                "manager": "skerry-syncer",
                "operation": "Apply",
                "fieldsV1": {"f:data": {"f:index.html": {}}},
            }
        ],
    },
    "data": {"index.html": "hello"},
}
FULL = Evidence(
    synced=True, configured=True, trusted=True, store="store-a", revision=90, config_revision=40
)


def opened(folder: Path) -> tuple[Journal, SyncRecords]:
    path = folder / "journal"
    path.write_text(EARLIER)
    journal = Journal(path, offload=inline)
    return journal, SyncRecords(journal)


def test_a_journal_of_an_earlier_version_opens_whole(tmp_path: Path) -> None:
    journal, records = opened(tmp_path)
    assert journal.damaged == 0
    assert set(records.all_placed()) == {PAGE, WEB}
    assert set(records.all_upsynced()) == {EVENT}
    page, web, event = records.placed(PAGE), records.placed(WEB), records.upsynced(EVENT)
    assert page is not None
    assert (page.edge_uid, page.store, page.config_revision) == ("e1", "store-a", 40)
    assert page.desired == Desired.of("v1", COPY)
    assert page.applied == page.desired.digest
    assert web is not None
    assert web.is_intent
    assert event is not None
    assert (event.mailbox_uid, event.content, event.status) == ("r1", "c1", "s1")
    assert records.released_uid(LEFT) == "e9"
    assert records.edge_uid(PAGE) == "e1"
    assert records.edge_uid(LEFT) == ""
    assert records.fact("store") == "store-a"
    assert records.fact("config")["revision"] == 40


async def test_an_upgrade_writes_nothing_anew_and_leaves_the_edge_alone(tmp_path: Path) -> None:
    journal, records = opened(tmp_path)
    page, event = records.placed(PAGE), records.upsynced(EVENT)
    assert page is not None
    assert event is not None
    records.set_placed(PAGE, page)
    records.set_upsynced(EVENT, event)
    await records.flush()
    journal.close()
    assert (tmp_path / "journal").read_text() == EARLIER
    observed = Observed(PAGE, Desired.of("v1", COPY), True, present(AT_THE_EDGE), page, FULL)
    assert not difference(observed)


async def test_entries_of_a_plan_keep_the_names_at_hand(tmp_path: Path) -> None:
    journal, records = opened(tmp_path)
    page = records.placed(PAGE)
    assert page is not None
    records.put(placed_key(PAGE), None)
    records.put(upsynced_key(PAGE), {"version": "v1"})
    records.put(released_key(PAGE), "e1")
    assert not records.was_placed(PAGE)
    assert records.placed(PAGE) is None
    assert records.was_upsynced(PAGE)
    assert records.released_uid(PAGE) == "e1"
    records.put(placed_key(PAGE), page.encode())
    assert records.was_placed(PAGE)
    await records.flush()
    journal.close()
    again = SyncRecords(Journal(tmp_path / "journal", offload=inline))
    assert again.placed(PAGE) == page
    assert set(again.all_upsynced()) == {EVENT, PAGE}
