"""What an edit does is counted by edges: one however many Locations lead there."""

from __future__ import annotations

from skerry.api.edge import EDGE_PLACEMENTS
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.console.effects import edge_effects
from skerry.logic.fleet.explanation.changes import PlacementChange
from skerry.logic.fleet.explanation.contents import ContentChange
from skerry.logic.fleet.placement.records import Destination

WEB = ObjectRef("w", *EDGE_PLACEMENTS.group_resource, "", "web")
OTHER = WEB._replace(name="other")
NEW = ObjectRef("w", "apps", "deployments", "shop", "new")


def at(name: str, location: str = "") -> Destination:
    return Destination("imw", location or name, name, f"uid-{name}")


# Both are reached by their own Location and by one that has all edges.
STANDING = (at("oslo"), at("bari"), at("oslo", "default"), at("bari", "default"))


def effects(*changes: PlacementChange) -> dict[str, str]:
    found = edge_effects(changes, lambda ref: STANDING if ref == WEB else ())
    return {name: effect for (_, name), effect in found.items()}


def test_an_edge_that_two_locations_lead_to_is_changed_once() -> None:
    content = ContentChange(NEW, ("spec",), STANDING)
    assert effects(PlacementChange(WEB, contents=(content,))) == {
        "oslo": "changed",
        "bari": "changed",
    }


def test_an_object_that_is_carried_from_now_on_reaches_every_destination() -> None:
    every = {"oslo": "changed", "bari": "changed"}
    assert effects(PlacementChange(WEB, objects_added=(NEW,))) == every
    assert effects(PlacementChange(WEB, objects_removed=(NEW,))) == every


def test_an_edge_is_lost_when_nothing_leads_there_any_more() -> None:
    assert effects(PlacementChange(WEB, destinations_removed=(at("oslo", "default"),))) == {}
    both = (at("oslo"), at("oslo", "default"))
    assert effects(PlacementChange(WEB, destinations_removed=both)) == {"oslo": "lost"}
    gone = PlacementChange(WEB, destinations_removed=both, objects_added=(NEW,))
    assert effects(gone) == {"oslo": "lost", "bari": "changed"}


def test_an_edge_is_gained_when_nothing_led_there_before() -> None:
    more = PlacementChange(WEB, destinations_added=(at("faro"), at("oslo", "north")))
    assert effects(more) == {"faro": "gained"}


def test_of_several_placements_the_gravest_effect_is_shown() -> None:
    changed = PlacementChange(WEB, objects_added=(NEW,))
    lost = PlacementChange(OTHER, destinations_removed=(at("oslo"),))
    assert effects(changed, lost) == {"oslo": "lost", "bari": "changed"}
    assert effects(lost, changed) == {"oslo": "lost", "bari": "changed"}
