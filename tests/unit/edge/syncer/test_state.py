"""What the tables are worth as a witness, and at which version an object goes down."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from skerry.api.kinds import GroupResource, GroupVersionResource
from skerry.logic.fleet.syncing.evidence import Evidence, doubt
from skerry.logic.fleet.syncing.recorded import DownsyncRecord
from tests.kit.chain.syncer_place import PAGE, WANTED, Place, place
from tests.kit.chain.syncer_world import CONFIG_MAPS, SPEC
from tests.kit.sim.loop import virtual

MAPS = GroupResource("", "configmaps")


def read_everything(here: Place) -> None:
    """Have the session's tables say that the hub was read, up to revision 9."""
    state = here.state
    state.trust.saw_header("a")
    config = {"metadata": {"name": "the-one", "uid": "c", "resourceVersion": "5"}, "spec": SPEC}
    state.config.informer.apply("ADDED", config)
    state.config.informer.synced.set()


@virtual
async def test_a_session_that_has_read_nothing_is_no_witness(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        found = here.state.evidence(MAPS)
        assert not found.synced
        assert not found.configured
        record = DownsyncRecord(WANTED, edge_uid="u", store="a")
        assert doubt(record, found, covered=True) is not None


@virtual
async def test_evidence_is_of_one_type(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        read_everything(here)
        state = here.state
        state.mailbox.follow({MAPS: CONFIG_MAPS})
        state.mailbox._types[MAPS].informer.synced.set()
        found = state.evidence(MAPS)
        assert (found.synced, found.configured, found.store) == (True, True, "a")
        other = state.evidence(GroupResource("", "secrets"))
        assert replace(other, synced=True, revision=found.revision) == found
        assert isinstance(other, Evidence)
        assert not other.synced


@virtual
async def test_an_object_goes_down_at_the_followed_version_else_at_the_recorded_one(
    tmp_path: Path,
) -> None:
    async with place(tmp_path) as here:
        state = here.state
        assert state.version_of(PAGE) is None
        state.records.set_placed(
            PAGE, DownsyncRecord(replace(WANTED, version="v1beta1"), edge_uid="u")
        )
        recorded = GroupVersionResource("", "v1beta1", "configmaps")
        assert state.version_of(PAGE) == recorded
        state.mailbox.follow({MAPS: CONFIG_MAPS})
        assert state.version_of(PAGE) == CONFIG_MAPS
