"""Caches of text keep no text that a client can make arbitrarily long."""

from __future__ import annotations

import importlib
import pkgutil
from functools import _lru_cache_wrapper

import skerry.api
import skerry.logic
import skerry.server
from skerry.kit.caching import SHORT, short_text_cache


def test_short_texts_are_worked_out_once_and_long_ones_each_time() -> None:
    asked: list[str] = []

    @short_text_cache(10)
    def length(text: str) -> int:
        asked.append(text)
        return len(text)

    for text in ("a", "a", "b" * SHORT, "b" * SHORT, "c" * (SHORT + 1), "c" * (SHORT + 1)):
        assert length(text) == len(text)
    assert [len(text) for text in asked] == [1, SHORT, SHORT + 1, SHORT + 1]


# What they are asked about is chosen by the server or bounded before.
BOUNDED = {
    "skerry.logic.machinery.apply.fieldset._scalar": "long text goes past it",
    "skerry.logic.machinery.apply.blank._lasting_blank": "schemas of Kubernetes' own",
    "skerry.logic.machinery.apply.root._rooted": "schemas",
    "skerry.logic.machinery.apply.typed._new_map": "many and long names go past it",
    "skerry.logic.machinery.apply.typed._sorted": "names of list-map keys, from schemas",
    "skerry.logic.machinery.builtin.amounts._known_form": "long text goes past it",
    "skerry.logic.machinery.builtin.amounts.parsed": "quantities are short",
    "skerry.logic.machinery.builtin.cron_jobs._zone_exists": "zones have short segments",
    "skerry.logic.machinery.builtin.configuration._is_key": "long text goes past it",
    "skerry.logic.machinery.builtin.definitions.common_descriptions": "one entry",
    "skerry.logic.machinery.builtin.definitions.definitions": "one entry",
    "skerry.logic.machinery.builtin.resources.builtin_resources": "one entry",
    "skerry.logic.machinery.cel.ast._environment": "one entry",
    "skerry.logic.machinery.cel.ast.parsed": "expressions, whose length is limited",
    "skerry.logic.machinery.cel.types._resource_fields": "one entry",
    "skerry.logic.machinery.cel.types.signature": "signatures of functions, which are ours",
    "skerry.logic.machinery.names._qualified_name": "long text goes past it",
    "skerry.logic.machinery.pod_security.evaluation._checks": "levels and versions, which are few",
    "skerry.logic.machinery.protobuf.table._table": "one entry",
    "skerry.logic.machinery.protobuf.table.fields_of": "our own table",
    "skerry.logic.machinery.quantity._read": "quantities are short",
    "skerry.logic.fleet.history.packing.key_of": "names of Locations and SyncTargets",
    "skerry.logic.fleet.translation.grants.not_granted": "names of workspaces",
    "skerry.logic.fleet.translation.ownership.owned_by": "records on copies, which are our own",
    "skerry.logic.fleet.translation.sources._kept_once": "bound kinds, and bindings that are short",
    "skerry.logic.fleet.translation.sources._shared_labels": "more than a few go past it",
    "skerry.logic.fleet.translation.sources._shared_ref": "names of objects",
    "skerry.logic.machinery.workspaces.names.shard_name_hash": "our own names",
    "skerry.logic.machinery.workspaces.principals.qualified_name": "names of principals",
    "skerry.logic.machinery.workspaces.schemas._native": "built-in types",
    "skerry.server.multiplex.watches._read_selectors": "long text goes past it",
    "skerry.server.request.info._collection": "long text goes past it",
    "skerry.server.security.pki._read": "bundles that the server was started with",
    "skerry.server.workspaces.authorization._entering": "clusters that there are",
    "skerry.server.workspaces.authorization._bound_user": "users that were authenticated",
    "urllib.parse.urlsplit": "behind split_url, which limits the length",
}


def test_every_cache_that_requests_fill_is_bounded_by_bytes() -> None:
    found = set()
    for package in (skerry.api, skerry.logic, skerry.server):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            members = vars(importlib.import_module(module.name))
            found |= {
                f"{function.__module__}.{function.__qualname__}"
                for function in members.values()
                if isinstance(function, _lru_cache_wrapper)
            }
    assert found - BOUNDED.keys() == set()
