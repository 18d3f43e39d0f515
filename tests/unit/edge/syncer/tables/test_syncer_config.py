"""What the SyncerConfigs say together, now or when the hub was last heard."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from skerry.api.edge import SYNCER_CONFIG_NAME
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.edge.syncer.tables.journal import Journal
from skerry.edge.syncer.tables.store_identity import Trust
from skerry.edge.syncer.tables.sync_records import SyncRecords
from skerry.edge.syncer.tables.syncer_config import ConfigView
from skerry.kit.ids import SeededIds
from skerry.runtime.client import Client
from skerry.runtime.informer import InformerFactory
from tests.kit.chain.inline import inline
from tests.kit.chain.syncer_world import SPEC
from tests.kit.sim.twin import Twin

PAGE = ObjectRef("", "", "configmaps", "shop", "page")


def config(name: str = SYNCER_CONFIG_NAME, spec: Object = SPEC, **metadata: Any) -> Object:
    named = {"name": name, "uid": f"u-{name}", "resourceVersion": "7", **metadata}
    return {"metadata": named, "spec": spec}


class Stage:
    """A view that a test fills; ``again`` is the same after a restart."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        records = SyncRecords(journal)
        factory = InformerFactory(Client(Twin()), ids=SeededIds(0))
        self.view = ConfigView(factory, records, Trust(records))
        self.changes = 0
        self.view.changed.connect(self._changed)

    def _changed(self) -> None:
        self.changes += 1

    def read(self, *objects: Object) -> None:
        for obj in objects:
            self.view.informer.apply("ADDED", obj)
        self.view.informer.synced.set()

    def again(self) -> Stage:
        return Stage(self.journal)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with closing(Journal(tmp_path / "journal", offload=inline)) as journal:
        yield Stage(journal)


async def test_before_it_was_read_nothing_is_configured_and_nothing_covered(stage: Stage) -> None:
    assert not stage.view.configured
    assert stage.view.main() is None
    assert stage.view.annotation("a") == ""
    assert not stage.view.scope.covers(PAGE)
    stage.read()
    assert not stage.view.configured, "read, and there is none"


async def test_what_was_read_counts_from_the_moment_it_is_complete(stage: Stage) -> None:
    stage.view.informer.apply("ADDED", config())
    assert stage.changes == 0
    stage.read()
    await stage.view.run()
    assert stage.changes == 1
    assert stage.view.configured
    assert stage.view.scope.covers(PAGE)
    assert stage.view.revision == 7


async def test_a_syncer_that_restarts_without_its_hub_knows_what_was_said(stage: Stage) -> None:
    stage.read(config())
    await stage.view.run()
    again = stage.again().view
    assert not again.configured
    assert again.scope.covers(PAGE)
    assert again.revision == 7


async def test_scopes_of_several_are_united_and_the_usual_one_carries_conditions(
    stage: Stage,
) -> None:
    other: Object = {
        "namespaceScope": {
            "namespaces": ["bank"],
            "resources": [{"group": "", "resource": "configmaps", "apiVersion": "v1"}],
        }
    }
    notes = {"a": "b"}
    stage.read(config("aaa", other), config(annotations=notes))
    await stage.view.run()
    assert stage.view.scope.covers(PAGE)
    assert stage.view.scope.covers(PAGE._replace(namespace="bank"))
    main = stage.view.main()
    assert main is not None
    assert main["metadata"]["name"] == SYNCER_CONFIG_NAME
    assert stage.view.annotation("a") == "b"
    assert stage.view.annotation("absent") == ""


async def test_an_annotation_changes_something_but_not_since_when_the_specs_hold(
    stage: Stage,
) -> None:
    stage.read(config())
    await stage.view.run()
    stage.view.informer.apply(
        "MODIFIED", config(resourceVersion="9", annotations={"edge.kcp.io/x": "y"})
    )
    assert stage.changes == 2
    assert stage.view.revision == 7
    stage.view.informer.apply("MODIFIED", config(spec={}, resourceVersion="11"))
    assert stage.view.revision == 11
    assert not stage.view.scope.covers(PAGE)


async def test_a_config_that_goes_leaves_what_it_said(stage: Stage) -> None:
    stage.read(config())
    await stage.view.run()
    stage.view.informer.apply("DELETED", config(resourceVersion="9"))
    assert not stage.view.configured
    # Without a config nobody says what belongs: the last word stands, and nothing is deleted.
    assert stage.view.scope.covers(PAGE)


async def test_a_report_is_no_change_of_what_is_configured(stage: Stage) -> None:
    stage.read(config())
    await stage.view.run()
    reports: list[None] = []
    stage.view.reported.connect(lambda: reports.append(None))
    report = {**config(resourceVersion="8"), "status": {"objects": {"applied": 1}}}
    stage.view.informer.apply("MODIFIED", report)
    assert (stage.changes, len(reports)) == (1, 1), "everything placed would be looked at"
    noted = config(resourceVersion="9", annotations={"a": "b"})
    stage.view.informer.apply("MODIFIED", {**noted, "status": report["status"]})
    assert (stage.changes, len(reports)) == (2, 1)
    stage.view.informer.apply("MODIFIED", config(resourceVersion="10", spec={}))
    assert stage.changes == 3
    stage.view.informer.apply("DELETED", config(resourceVersion="11", spec={}))
    assert stage.changes == 4
