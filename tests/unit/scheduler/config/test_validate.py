"""A completed configuration: every error is collected, in kube-scheduler's words."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.scheduler.config.defaults import with_defaults
from skerry.scheduler.config.validate import configuration_errors


def fields(**raw: Any) -> list[str]:
    return [error.field for error in configuration_errors(with_defaults(raw))]


def profile(name: str = "a", **parts: Any) -> dict[str, Any]:
    return {"schedulerName": name, **parts}


def test_the_defaults_are_valid() -> None:
    assert fields() == []


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        ({"parallelism": 0}, ["parallelism"]),
        ({"clientConnection": {"burst": -1}}, ["clientConnection.burst"]),
        ({"percentageOfNodesToScore": 101}, ["percentageOfNodesToScore"]),
        ({"podInitialBackoffSeconds": 0}, ["podInitialBackoffSeconds"]),
        ({"podInitialBackoffSeconds": 20}, ["podMaxBackoffSeconds"]),
        ({"leaderElection": {"leaseDuration": "0s"}},
         ["leaderElection.leaseDuration", "leaderElection.leaseDuration"]),
        ({"leaderElection": {"renewDeadline": "1s"}}, ["leaderElection.renewDeadline"]),
        ({"leaderElection": {"resourceLock": "endpoints"}}, ["leaderElection.resourceLock"]),
        # Nobody asks about an election that is not held.
        ({"leaderElection": {"leaderElect": False, "leaseDuration": "0s"}}, []),
        ({"profiles": [profile(percentageOfNodesToScore=-1)]},
         ["profiles[0].percentageOfNodesToScore"]),
        ({"profiles": [profile("a"), profile("a")]}, ["profiles[1].schedulerName"]),
        ({"profiles": [profile("a"), {}]}, ["profiles[1].schedulerName"]),
    ],
)  # fmt: skip
def test_each_field_has_its_range(raw: dict[str, Any], found: list[str]) -> None:
    assert fields(**raw) == found


def test_arguments_are_checked_where_they_stand_and_named_once() -> None:
    bad = {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 200}}
    assert fields(profiles=[profile(pluginConfig=[bad])]) == [
        "profiles[0].pluginConfig[0].args.hardPodAffinityWeight"
    ]
    good = {"name": "InterPodAffinity"}
    assert fields(profiles=[profile(pluginConfig=[good, good])]) == ["profiles[0].pluginConfig[1]"]


def test_plugins_that_are_gone_are_refused() -> None:
    enabled = {"filter": {"enabled": [{"name": "EBSLimits"}]}}
    assert fields(profiles=[profile(plugins=enabled)]) == ["profiles[0].plugins.filter.enabled[0]"]
    assert fields(profiles=[profile(pluginConfig=[{"name": "EBSLimits"}])]) == [
        "profiles[0].pluginConfig[0]"
    ]


def test_there_is_one_queue_so_all_profiles_order_it_alike() -> None:
    own = {"queueSort": {"enabled": [{"name": "Mine"}]}}
    two = {"queueSort": {"enabled": [{"name": "Mine"}, {"name": "Yours"}]}}
    assert fields(profiles=[profile("a"), profile("b", plugins=own)]) == [
        "profiles[1].plugins.queueSort"
    ]
    assert fields(profiles=[profile("a", plugins=own), profile("b", plugins=own)]) == []
    assert fields(profiles=[profile("a", plugins=two)]) == ["profiles[0].plugins.queueSort.Enabled"]
    args = [{"name": "Mine", "args": {"x": 1}}]
    assert fields(
        profiles=[profile("a", plugins=own), profile("b", plugins=own, pluginConfig=args)]
    ) == ["profiles[1].pluginConfig.args"]


@pytest.mark.parametrize(
    ("extenders", "found"),
    [
        ([{"prioritizeVerb": "p", "weight": 1}], []),
        ([{"prioritizeVerb": "p"}], ["extenders[0].weight"]),
        ([{"bindVerb": "b"}, {"bindVerb": "b"}], ["extenders"]),
        ([{"managedResources": [{"name": "a.com/b"}]}], []),
        ([{"managedResources": [{"name": "cpu"}]}], ["extenders[0].managedResources[0].name"]),
        ([{"managedResources": [{"name": "a b"}]}], ["extenders[0].managedResources[0].name"]),
        (
            [
                {"managedResources": [{"name": "a.com/b"}]},
                {"managedResources": [{"name": "a.com/b"}]},
            ],
            ["extenders[1].managedResources[0].name"],
        ),
    ],
)
def test_extenders_do_not_get_in_each_others_way(
    extenders: list[dict[str, Any]], found: list[str]
) -> None:
    assert fields(extenders=extenders) == found
