"""What a SyncerConfig covers."""

from __future__ import annotations

from skerry.api.kinds import GroupResource
from skerry.api.refs import ObjectRef
from skerry.logic.machinery.edges.scope import scope_of, united


def test_a_scope_covers_what_the_config_names_and_no_more() -> None:
    scope = scope_of(
        {
            "namespaceScope": {
                "namespaces": ["a"],
                "resources": [{"group": "apps", "resource": "deployments", "apiVersion": "v1"}],
            },
            "clusterScope": [
                {"group": "", "resource": "nodes", "apiVersion": "v1", "objects": ["n"]},
                {"group": "g", "resource": "all", "apiVersion": "v1"},
                {"group": "g", "resource": "none", "apiVersion": "v1", "objects": []},
            ],
        }
    )
    assert scope.covers(ObjectRef("", "apps", "deployments", "a", "x"))
    assert not scope.covers(ObjectRef("", "apps", "deployments", "b", "x"))
    assert not scope.covers(ObjectRef("", "", "configmaps", "a", "x"))
    assert scope.covers(ObjectRef("", "", "namespaces", "", "a"))
    assert not scope.covers(ObjectRef("", "", "namespaces", "", "b"))
    assert scope.covers(ObjectRef("", "", "nodes", "", "n"))
    assert not scope.covers(ObjectRef("", "", "nodes", "", "m"))
    assert scope.covers(ObjectRef("", "g", "all", "", "anything"))
    assert not scope.covers(ObjectRef("", "g", "none", "", "anything"))


def test_upsync_rules_take_the_star_only_alone_and_nothing_for_an_empty_list() -> None:
    scope = scope_of(
        {
            "upsync": [
                {"apiGroup": "g", "resources": ["*"], "namespaces": ["n"], "names": ["*"]},
                {"apiGroup": "h", "resources": ["cogs"], "names": ["William"]},
            ]
        }
    )
    assert scope.brings_up(ObjectRef("", "g", "x", "n", "any"))
    assert not scope.brings_up(ObjectRef("", "g", "x", "m", "any"))
    assert scope.brings_up(ObjectRef("", "g", "clusterscoped", "", "any"))
    assert scope.brings_up(ObjectRef("", "h", "cogs", "", "William"))
    assert not scope.brings_up(ObjectRef("", "h", "cogs", "n", "William"))
    assert scope.unserved({GroupResource("g", "x")}) == {GroupResource("h", "cogs")}


def test_several_configs_count_together() -> None:
    one = scope_of({"clusterScope": [
        {"group": "g", "resource": "r", "apiVersion": "v1", "objects": ["a"]}]})  # fmt: skip
    other = scope_of({"clusterScope": [
        {"group": "g", "resource": "r", "apiVersion": "v1", "objects": ["b"]}]})  # fmt: skip
    both = united((one, other))
    assert both.covers(ObjectRef("", "g", "r", "", "a"))
    assert both.covers(ObjectRef("", "g", "r", "", "b"))
