"""Built-in types whole: every one has its schema, and its own rules where a table has them."""

from __future__ import annotations

from collections import Counter

from skerry.logic.machinery.builtin.catalogue import catalogue
from skerry.logic.machinery.builtin.resources import _TABLES, builtin_resources


def test_every_served_version_is_there_once_in_the_order_of_discovery() -> None:
    assert [found.info for found in builtin_resources()] == list(catalogue())


def test_no_two_tables_have_rules_for_one_type() -> None:
    names = Counter(name for table in _TABLES for name in table)
    assert [name for name, count in names.items() if count > 1] == []


def test_every_rule_belongs_to_a_type_that_is_served() -> None:
    served = {info.gvr for info in catalogue()} | {info.group_resource for info in catalogue()}
    assert [name for table in _TABLES for name in table if name not in served] == []


def test_rules_of_a_version_go_before_those_of_the_type() -> None:
    tables = {name: rules for table in _TABLES for name, rules in table.items()}
    for found in builtin_resources():
        rules = tables.get(found.info.gvr) or tables.get(found.info.group_resource)
        if rules is not None:
            assert found.validate_create is rules.validate_create
            assert found.check_name is rules.check_name
        assert found.storage_version
