"""What a definition serves: validation, columns, selectors, scale."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.api.schema import Definitions
from skerry.logic.machinery.crd import resources_of
from skerry.logic.machinery.crd.jsonpath import compiled
from skerry.logic.machinery.crd.resources import replicas_errors
from skerry.logic.machinery.jsonpath import JSONPathError
from skerry.logic.machinery.resource import Resource, Scale
from skerry.logic.machinery.schema import prune
from tests.kit.machinery.crds import cron_tab, schema_of, version_of
from tests.kit.machinery.schemas import builtin, json_values

NOW = datetime(2024, 1, 3, tzinfo=UTC)


def cron(**spec: Any) -> Object:
    return {
        "apiVersion": "stable.example.com/v1",
        "kind": "CronTab",
        "metadata": {"name": "a", "creationTimestamp": "2024-01-01T00:00:00Z"},
        "spec": {"cronSpec": "* * * * */5", **spec},
    }


def resource(definitions: Definitions | None = None) -> Resource:
    return resources_of(cron_tab(), definitions)[0]


def messages(new: Object, old: Object | None = None) -> list[str]:
    served = resource()
    for obj in (new, old):
        if obj is not None:
            served.default(obj)
    errors = served.validate_create(new) if old is None else served.validate_update(new, old)
    return [str(error) for error in errors]


def test_discovery_facts_come_from_the_definition() -> None:
    info = resource().info
    assert (info.group, info.version, info.resource, info.kind) == (
        "stable.example.com",
        "v1",
        "crontabs",
        "CronTab",
    )
    assert info.namespaced
    assert (info.singular, info.list_kind) == ("crontab", "CronTabList")
    assert (info.short_names, info.categories) == (("ct",), ("all",))
    assert [sub.name for sub in info.subresources] == ["status", "scale"]
    assert info.subresources[1].kind == ("autoscaling", "v1", "Scale")
    assert resource().scale == Scale("spec.replicas", "status.replicas", "status.labelSelector")
    assert resource().custom
    assert resource().has_status


def test_objects_are_defaulted_and_validated() -> None:
    obj = cron()
    assert messages(obj) == []
    assert obj["spec"]["replicas"] == 1
    assert messages(cron(replicas="many")) == [
        (
            'spec.replicas: Invalid value: "string": '
            'spec.replicas in body must be of type integer: "string"'
        ),
        (
            ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: many is of the type "
            "string, expected int64"
        ),
        (
            '<nil>: Invalid value: "null": '
            "some validation rules were not checked because the object "
            "was invalid; correct the existing errors to complete validation"
        ),
    ]


@pytest.mark.parametrize(
    ("replicas", "why"),
    [(-1, "should be a non-negative integer"), (2**31, "should be less than or equal to")],
)
def test_replicas_are_what_a_scale_can_show(replicas: int, why: str) -> None:
    (error,) = replicas_errors({"spec": {"replicas": replicas}}, "spec.replicas")
    assert error.field == ".spec.replicas"
    assert why in str(error)


@pytest.mark.parametrize("obj", [{}, {"spec": None}, {"spec": {"replicas": 2**31 - 1}}])
def test_replicas_may_be_absent(obj: Object) -> None:
    assert replicas_errors(obj, "spec.replicas") == []


def test_replicas_cannot_be_below_what_is_no_object() -> None:
    (error,) = replicas_errors({"spec": ["a"]}, "spec.replicas")
    assert "expected map[string]interface{}" in str(error)


def test_a_finalizer_that_anybody_could_call_so_earns_a_warning() -> None:
    obj = cron()
    obj["metadata"]["finalizers"] = ["orphan", "a.example.com/x", "mine", "dotted.name"]
    preferred = "prefer a domain-qualified finalizer name"
    assert [text.partition(" to avoid")[0] for text in resource().warnings(obj)] == [
        f'metadata.finalizers: "mine": {preferred}',
        f'metadata.finalizers: "dotted.name": {preferred} including a path (/)',
    ]


def test_rules_run_on_create_and_update() -> None:
    assert messages(cron(replicas=2, minReplicas=3)) == [
        'spec.replicas: Invalid value: "object": replicas must not be below minReplicas'
    ]
    assert messages(cron(zone="b"), cron(zone="a")) == [
        'spec: Invalid value: "object": zone is immutable'
    ]
    assert messages(cron(env=[{"name": "_x"}])) == [
        "spec.env[0]: Invalid value: \"object\": failed rule: !self.name.startsWith('_')"
    ]


def test_an_update_is_not_held_to_what_was_wrong_before() -> None:
    old = cron(cronSpec="nonsense", env=[{"name": "_x"}])
    assert len(messages(copy.deepcopy(old))) == 2
    new = copy.deepcopy(old)
    new["spec"]["image"] = "nginx"
    assert messages(new, old) == []
    new["spec"]["env"][0]["value"] = "changed"
    assert messages(new, copy.deepcopy(old)) == [
        "spec.env[0]: Invalid value: \"object\": failed rule: !self.name.startsWith('_')"
    ]


def test_unknown_fields_are_pruned_and_metadata_is_kept() -> None:
    obj = {**cron(nope=1), "extra": {}}
    assert prune(resource().schema, obj) == ["extra", "spec.nope"]
    assert obj["metadata"]["name"] == "a"
    described = resource(builtin())
    strange = cron()
    strange["metadata"]["nope"] = 1
    assert prune(described.schema, strange) == ["metadata.nope"]


def test_names_in_metadata_may_be_restricted() -> None:
    crd = cron_tab()
    schema_of(crd)["properties"]["metadata"] = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 3}},
    }
    obj = cron()
    obj["metadata"]["name"] = "long"
    first, _ = resources_of(crd)[0].validate_create(obj)
    assert str(first) == "metadata.name: Too long: may not be more than 3 bytes"


def test_columns_show_what_their_paths_find() -> None:
    obj = cron(replicas=3)
    obj["status"] = {"conditions": [{"type": "Synced", "status": "False"},
                                    {"type": "Ready", "status": "True"}]}  # fmt: skip
    shown = {column.name: column.cell(obj, NOW) for column in resource().columns}
    assert shown == {
        "Name": "a",
        "Spec": "* * * * */5",
        "Replicas": 3,
        "Ready": "True",
        "Age": "2d",
    }
    assert [column.priority for column in resource().columns] == [0, 0, 0, 1, 0]


def test_without_columns_of_its_own_a_kind_shows_its_age() -> None:
    crd = cron_tab()
    del version_of(crd)["additionalPrinterColumns"]
    assert [column.name for column in resources_of(crd)[0].columns] == ["Name", "Age"]


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("string", {"b": 1, "a": [True]}, '{"a":[true],"b":1}'),
        ("string", 3.0, "3"),
        ("string", True, "true"),
        ("string", None, None),
        ("integer", 3.7, 3),
        ("integer", "3", None),
        ("number", 3, 3),
        ("boolean", "true", None),
        ("boolean", False, False),
        ("date", "2024-01-02T23:59:00Z", "60s"),
        ("date", "nonsense", "<invalid>"),
        ("date", 5, None),
        ("color", "red", None),
    ],
)
def test_a_cell_fits_its_column_s_type(kind: str, value: Any, expected: Any) -> None:
    crd = cron_tab()
    column = {"name": "X", "type": kind, "jsonPath": ".spec.x"}
    version_of(crd)["additionalPrinterColumns"] = [column]
    shown = resources_of(crd)[0].columns[1]
    assert shown.cell({"spec": {"x": value}}, NOW) == expected
    assert shown.description.endswith("(in JSONPath format): .spec.x")


def test_columns_end_before_one_that_cannot_be_read() -> None:
    crd = cron_tab()
    version_of(crd)["additionalPrinterColumns"][1]["jsonPath"] = ".spec[?(@.a"
    assert [column.name for column in resources_of(crd)[0].columns] == ["Name", "Spec"]


def test_selectable_fields_are_text_and_empty_when_absent() -> None:
    fields = resource().selectable_fields
    assert set(fields) == {"spec.image", "spec.replicas"}
    assert fields["spec.replicas"](cron(replicas=3)) == "3"
    assert fields["spec.image"](cron()) == ""


def test_each_served_version_is_a_resource_the_preferred_first() -> None:
    crd = cron_tab()
    for name, served in (("v1beta1", True), ("v2", True), ("v1alpha1", False)):
        extra = {**copy.deepcopy(version_of(crd)), "name": name, "served": served}
        extra.update({"storage": False, "deprecated": name == "v1beta1"})
        crd["spec"]["versions"].append(extra)
    served_versions = resources_of(crd)
    assert [one.info.version for one in served_versions] == ["v2", "v1", "v1beta1"]
    assert {one.storage_version for one in served_versions} == {"v1"}
    deprecated = "stable.example.com/v1beta1 CronTab is deprecated"
    assert [one.deprecation for one in served_versions] == [(), (), (deprecated,)]


def test_equal_definitions_share_what_was_compiled() -> None:
    other = cron_tab()
    other["metadata"]["uid"] = "elsewhere"
    assert resources_of(cron_tab()) is resources_of(other)
    other["spec"]["names"]["categories"] = ["some"]
    assert resources_of(cron_tab()) is not resources_of(other)


def test_granted_names_are_served_not_wanted_ones() -> None:
    crd = cron_tab()
    crd["status"]["acceptedNames"] = {**crd["spec"]["names"], "shortNames": ["old"]}
    assert resources_of(crd)[0].info.short_names == ("old",)


DATA: Object = {
    "a": {"b": [1, 2, 3], "c.d": "dot", "e f": 1},
    "l": [{"t": "x", "n": 1}, {"t": "y", "n": 2}, {"n": 3}],
    "n": {"n": 4},
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".a.b", [[1, 2, 3]]),
        ("{.a.b[0]}", [1]),
        (".a.b[-1]", [3]),
        (".a.b[7]", []),
        (".a.b[0:2]", [1, 2]),
        (".a.b[::2]", [1, 3]),
        (".a.b[0,2]", [1, 3]),
        (".a.b[*]", [1, 2, 3]),
        (r".a.c\.d", ["dot"]),
        (".a['c.d']", ["dot"]),
        ('.a["c.d"]', ["dot"]),
        (".a['c.d','e f']", ["dot", 1]),
        (".l[*].t", ["x", "y"]),
        ('.l[?(@.t=="y")].n', [2]),
        (".l[?(@.t=='y')].n", [2]),
        (".l[?(@.n>1)].n", [2, 3]),
        (".l[?(@.n != 2)].n", [1, 3]),
        (".l[?(@.t)].n", [1, 2]),
        (".l[?(@.t>1)].n", []),
        ("..n", [{"n": 4}, 1, 2, 3, 4]),
        (".a.*", [[1, 2, 3], "dot", 1]),
        (".", [DATA]),
        ("a.b[0]", [1]),
        ("$.a.b[1]", [2]),
        (".a.b.c", []),
        (".missing.more", []),
    ],
)
def test_paths_find_what_client_go_finds(path: str, expected: list[Any]) -> None:
    assert compiled(path)(DATA) == expected


@pytest.mark.parametrize(
    "path", [".a[", ".a[x]", ".a[]", ".a[?(@.b==)]", ".a[?@.b]", ".a b", ".a['b'x]", ".a)", ".a[-]"]
)
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(JSONPathError):
        compiled(path)


@settings(max_examples=60, deadline=None)
@given(json_values, st.lists(st.sampled_from(["a", "b", "c", 0, 1]), max_size=4))
def test_a_plain_path_finds_exactly_what_stepping_finds(value: Any, way: list[str | int]) -> None:
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in way)
    expected = [value]
    for step in way:
        expected = [inner for outer in expected for inner in _stepped(outer, step)]
    assert compiled(path)(value) == expected


def _stepped(value: Any, step: str | int) -> list[Any]:
    if isinstance(step, str):
        return [value[step]] if isinstance(value, dict) and step in value else []
    return [value[step]] if isinstance(value, list) and step < len(value) else []


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet=".[]()?@'\"ab01:*,=<> \\-{}$", max_size=12), json_values)
def test_any_text_is_a_path_or_is_refused(path: str, value: Any) -> None:
    try:
        find = compiled(path)
    except JSONPathError:
        return
    assert isinstance(find(value), list)
