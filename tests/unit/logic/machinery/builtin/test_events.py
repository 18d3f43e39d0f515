"""One event, two APIs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.logic.machinery.builtin.events import NEW_API, STORED_VERSION, convert
from tests.kit.machinery.objects import errors_of, named, resource, update_errors

CORE, NEW = resource("events"), resource("events", "events.k8s.io")
STORED: Object = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "e", "namespace": "default"},
    "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
    "message": "m",
    "source": {"component": "kubelet"},
    "firstTimestamp": "a",
    "lastTimestamp": "b",
    "count": 3,
    "reportingComponent": "",
    "type": "Normal",
}


def strict(**fields: object) -> Object:
    base = {
        "eventTime": "2024-01-01T00:00:00.000000Z",
        "type": "Normal",
        "reason": "Because",
        "action": "Doing",
        "reportingController": "example.com/c",
        "reportingInstance": "i",
        "regarding": {"namespace": "default"},
    }
    return named(NEW, **{**base, **fields})


def test_the_new_api_renames_what_the_old_one_says() -> None:
    shown = convert(STORED, "v1")
    assert shown["apiVersion"] == NEW_API
    assert shown["regarding"]["name"] == "p"
    assert shown["note"] == "m"
    assert shown["deprecatedSource"] == {"component": "kubelet"}
    assert (shown["deprecatedFirstTimestamp"], shown["deprecatedCount"]) == ("a", 3)
    assert "message" not in shown


@given(
    st.dictionaries(
        st.sampled_from([*sorted(STORED.keys() - {"apiVersion"}), "series", "action", "related"]),
        st.integers(),
    )
)
def test_conversion_there_and_back_loses_nothing(fields: Object) -> None:
    stored = {"apiVersion": "v1", **fields}
    assert convert(convert(stored, "v1"), STORED_VERSION) == stored
    assert convert(stored, STORED_VERSION) is stored


def test_the_old_api_takes_nearly_anything_from_the_right_namespace() -> None:
    assert errors_of(CORE, named(CORE, involvedObject={"namespace": "default"})) == []
    assert errors_of(CORE, named(CORE, involvedObject={"namespace": "other"})) == [
        'involvedObject.namespace: Invalid value: "other": does not match event.namespace'
    ]


def test_the_new_api_is_strict() -> None:
    assert errors_of(NEW, strict()) == []
    errors = errors_of(NEW, strict(eventTime=None, type="Odd", deprecatedCount=2))
    assert "eventTime: Required value" in errors
    assert 'type: Invalid value: "": has invalid value: Odd' in errors
    assert 'count: Invalid value: "": needs to be unset' in errors
    errors = errors_of(NEW, strict(reason="", note="n" * 1025, reportingController=""))
    assert "reason: Required value" in errors
    assert "reportingController: Required value" in errors
    assert 'message: Invalid value: "": can have at most 1024 characters' in errors


def test_what_happened_does_not_change_but_goes_on() -> None:
    series = {"count": 2, "lastObservedTime": "2024-01-01T00:00:00.000000Z"}
    assert update_errors(NEW, strict(), {"series": series}) == []
    assert update_errors(NEW, strict(), {"series": {"count": 1}}) == [
        'series.count: Invalid value: "": should be at least 2',
        "series.lastObservedTime: Required value",
    ]
    assert update_errors(NEW, strict(), {"reason": "Other"}) == [
        'reason: Invalid value: "Other": field is immutable'
    ]


def test_events_are_selected_through_either_api() -> None:
    assert CORE.selectable_fields["involvedObject.name"](STORED) == "p"
    assert CORE.selectable_fields["source"](STORED) == "kubelet"
    assert NEW.selectable_fields["regarding.name"](STORED) == "p"
    assert NEW.selectable_fields["regarding.name"](convert(STORED, "v1")) == "p"
