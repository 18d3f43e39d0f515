"""Profiles are assembled in kube-scheduler's order, or refused in its words."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.scheduler.cache.cluster import Cluster
from skerry.scheduler.config.load import complete
from skerry.scheduler.framework.handle import Handle
from skerry.scheduler.framework.profile import (
    Assembled,
    PluginRef,
    PluginSet,
    ProfileError,
    ProfileSpec,
    assemble,
)
from skerry.scheduler.framework.registry import Registry, RegistryError, installed_plugins
from skerry.scheduler.registry import in_tree_registry


class _Named:
    def __init__(self, args: Any, handle: Any) -> None:
        pass


class Sorter(_Named):
    name = "Sorter"

    def sort_key(self, item: Any) -> Any:
        return 0


class Binder(_Named):
    name = "Binder"

    async def bind(self, state: Any, item: Any, target: str) -> None:
        return None


class Judge(_Named):
    """Filters and scores."""

    name = "Judge"

    def filter(self, state: Any, item: Any, target: Any) -> None:
        return None

    def score(self, state: Any, item: Any, target: Any) -> int:
        return 0


class Other(Judge):
    name = "Other"


class Third(Judge):
    name = "Third"


def registry() -> Registry:
    return Registry({cls.name: cls for cls in (Sorter, Binder, Judge, Other, Third)})


def spec(**points: PluginSet) -> ProfileSpec:
    base = {
        "queueSort": PluginSet((PluginRef("Sorter"),)),
        "bind": PluginSet((PluginRef("Binder"),)),
    }
    return ProfileSpec("a", base | points)


def enabled(*names: str, disabled: tuple[str, ...] = (), **weights: int) -> PluginSet:
    return PluginSet(tuple(PluginRef(n, weights.get(n, 0)) for n in names), disabled)


def assembled(found: ProfileSpec) -> Assembled:
    return assemble(found, registry(), None)


def names(found: Assembled, point: str) -> list[str]:
    return [plugin.name for plugin in found.at[point]]


def refusal(found: ProfileSpec) -> str:
    with pytest.raises(ProfileError) as caught:
        assembled(found)
    return str(caught.value)


def test_multipoint_enables_a_plugin_wherever_it_extends_a_point() -> None:
    found = assembled(spec(multiPoint=enabled("Judge")))
    assert names(found, "filter") == names(found, "score") == ["Judge"]
    assert names(found, "preFilter") == []


def test_reconfigured_multipoint_plugins_come_first_and_others_last() -> None:
    found = assembled(
        spec(multiPoint=enabled("Judge", "Other"), score=enabled("Third", "Other", Other=5))
    )
    assert names(found, "score") == ["Other", "Judge", "Third"]
    assert names(found, "filter") == ["Judge", "Other"]
    assert found.weights == {"Third": 1, "Other": 5, "Judge": 1}


def test_a_star_keeps_multipoint_out_of_a_point() -> None:
    found = assembled(spec(multiPoint=enabled("Judge"), filter=enabled("Other", disabled=("*",))))
    assert names(found, "filter") == ["Other"]
    assert names(found, "score") == ["Judge"]


def test_a_points_own_weight_beats_multipoints() -> None:
    found = assembled(spec(multiPoint=enabled("Judge", Judge=3), score=enabled("Judge", Judge=8)))
    assert found.weights["Judge"] == 8


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (spec(score=enabled("Nope")), 'ScorePlugin "Nope" does not exist'),
        (spec(score=enabled("Binder")), 'plugin "Binder" does not extend ScorePlugin plugin'),
        (
            spec(filter=enabled("Judge", "Judge")),
            'plugin "Judge" already registered as "FilterPlugin"',
        ),
        (
            spec(bind=PluginSet()),
            'at least one bind plugin is needed for profile with scheduler name "a"',
        ),
        (
            spec(queueSort=PluginSet()),
            'only one queue sort plugin required for profile with scheduler name "a", but got 0',
        ),
        (
            spec(score=enabled("Judge", "Other", Judge=2**62, Other=2**62)),
            "total score of Score plugins could overflow",
        ),
    ],
)
def test_profiles_that_cannot_work_are_refused(found: ProfileSpec, message: str) -> None:
    assert refusal(found) == message


def test_bad_fit_arguments_are_found_when_the_plugin_is_made() -> None:
    strategy = {"scoringStrategy": {"type": "Best", "resources": [{"name": "cpu", "weight": 200}]}}
    config = complete(
        {"profiles": [{"pluginConfig": [{"name": "NodeResourcesFit", "args": strategy}]}]}
    )
    with pytest.raises(ProfileError) as caught:
        assemble(config.profiles[0], in_tree_registry(), Handle(Cluster()))
    assert str(caught.value) == (
        'initializing plugin "NodeResourcesFit": [scoringStrategy.type: '
        'Unsupported value: "Best": supported values: "LeastAllocated", "MostAllocated", '
        '"RequestedToCapacityRatio", scoringStrategy.resources[0].weight: Invalid value: 200: '
        "resource weight of cpu not in valid range (0, 100]]"
    )


def test_two_plugins_of_one_name_are_refused() -> None:
    ours = in_tree_registry()
    with pytest.raises(RegistryError, match="a plugin named NodeName already exists"):
        ours.merge(Registry({"NodeName": Judge}))


def test_installed_packages_offer_plugins_by_entry_points() -> None:
    from importlib.metadata import EntryPoint

    entry = EntryPoint("Judge", f"{__name__}:Judge", "skerry.scheduler.plugins")
    assert installed_plugins([entry]).get("Judge") is Judge
