"""Objects on their way to a Location, and what withholds them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from skerry.logic.fleet.customization.customize import (
    CUSTOMIZER_NOT_FOUND,
    IDENTITY_REPLACED,
    INVALID_PATH,
    INVALID_VALUE,
    LOCATION_NOT_FOUND,
    MISSING_PARAMETER,
    Customized,
    CustomizerName,
    Withheld,
    customize,
    customizer_name,
    wants_customization,
)

LOCATION = {"metadata": {"name": "florin", "labels": {"loc-name": "florin", "n": "3"}}}


def _object(annotations: dict[str, str], **more: Any) -> dict[str, Any]:
    metadata = {"name": "web", "namespace": "shop", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **more}


def _customizer(*pairs: tuple[str, str], expand: bool = False) -> dict[str, Any]:
    annotations = {"edge.kcp.io/expand-parameters": "true"} if expand else {}
    return {
        "metadata": {"name": "c", "namespace": "shop", "annotations": annotations},
        "replacements": [{"path": path, "value": value} for path, value in pairs],
    }


NAMED = {"edge.kcp.io/customizer": "c"}
EXPANDED = {"edge.kcp.io/expand-parameters": "true"}


def _sent(obj: Any, customizer: Any = None, location: Any = LOCATION) -> Any:
    outcome = customize(obj, customizer, location)
    assert isinstance(outcome, Customized), outcome
    assert outcome.undone == ()
    return outcome.object


def _reason(obj: Any, customizer: Any = None, location: Any = LOCATION) -> str:
    outcome = customize(obj, customizer, location)
    assert isinstance(outcome, Withheld)
    return outcome.problem.reason


def test_an_object_that_asks_for_nothing_is_sent_as_it_is() -> None:
    obj = _object({}, data={"k": "%(loc-name)"})
    assert not wants_customization(obj)
    assert _sent(obj, None, None) is obj


def test_parameters_are_expanded_when_the_object_asks() -> None:
    assert _sent(_object(EXPANDED, data={"k": "at %(loc-name)"}))["data"] == {"k": "at florin"}


def test_asking_with_anything_but_true_is_not_asking() -> None:
    obj = _object({"edge.kcp.io/expand-parameters": "yes"}, data={"k": "%(loc-name)"})
    assert _sent(obj) is obj


def test_replacements_are_made_in_order_and_the_source_stays_untouched() -> None:
    obj = _object(NAMED, data={"k": "old"})
    kept = copy.deepcopy(obj)
    sent = _sent(obj, _customizer(("$.data", '{"k": "1", "l": "2"}'), ("$.data.k", '"3"')))
    assert sent["data"] == {"k": "3", "l": "2"}
    assert obj == kept


def test_the_example_scenarios_environment_variable_is_replaced() -> None:
    containers = [{"name": "httpd", "env": [{"name": "EXAMPLE", "value": "none"}]}]
    obj = _object(NAMED, spec={"template": {"spec": {"containers": containers}}})
    path = "$.spec.template.spec.containers.0.env.0.value"
    sent = _sent(obj, _customizer((path, '"env is %(n)"'), expand=True))
    assert sent["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"] == "env is 3"


def test_a_customizer_is_expanded_only_when_it_asks_itself() -> None:
    pairs = [("$.data['%(loc-name)']", "%(n)")]
    expanded = _sent(_object(NAMED), _customizer(*pairs, expand=True))
    assert expanded["data"] == {"florin": 3}
    assert _reason(_object(NAMED), _customizer(*pairs)) == MISSING_PARAMETER


def test_a_customizer_is_named_within_the_objects_namespace_or_by_its_own() -> None:
    assert customizer_name(_object(NAMED)) == CustomizerName("shop", "c")
    elsewhere = _object({"edge.kcp.io/customizer": "central/c"})
    assert customizer_name(elsewhere) == CustomizerName("central", "c")
    assert customizer_name(_object({})) is None


def test_a_missing_customizer_withholds_the_object() -> None:
    assert _reason(_object(NAMED), None) == CUSTOMIZER_NOT_FOUND


def test_a_missing_location_withholds_only_objects_that_ask_for_parameters() -> None:
    assert _reason(_object(EXPANDED), None, None) == LOCATION_NOT_FOUND
    assert _reason(_object(NAMED), _customizer(expand=True), None) == LOCATION_NOT_FOUND
    assert _sent(_object(NAMED), _customizer(("$.data", "{}")), None)["data"] == {}


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ("data", "1", INVALID_PATH),
        ("$.kind.x", "1", INVALID_PATH),
        ("$.data", "{", INVALID_VALUE),
        ("$.data", "NaN", INVALID_VALUE),
        ("$.metadata.name", '"other"', IDENTITY_REPLACED),
        ("$.kind", '"Secret"', IDENTITY_REPLACED),
        ("$", "[]", IDENTITY_REPLACED),
        ("$..name", '"other"', IDENTITY_REPLACED),
        ("$.metadata.labels", '{"a": 1}', IDENTITY_REPLACED),
    ],
)
def test_a_replacement_that_cannot_be_made_withholds_or_is_left_out(
    path: str, value: str, reason: str
) -> None:
    obj = _object(NAMED, data={"k": "old"})
    customizer = _customizer((path, value), ("$.data.k", '"new"'))
    assert _reason(obj, customizer) == reason
    lenient = customize(obj, customizer, LOCATION, strict=False)
    assert isinstance(lenient, Customized)
    assert [problem.reason for problem in lenient.undone] == [reason]
    assert lenient.object == {**obj, "data": {"k": "new"}}


def test_without_strictness_a_missing_customizer_ships_the_object_as_it_is() -> None:
    obj = _object(NAMED)
    outcome = customize(obj, None, LOCATION, strict=False)
    assert isinstance(outcome, Customized)
    assert outcome.object == obj
    assert outcome.undone[0].message == "there is no Customizer shop/c"


def _problem(customizer: Any) -> tuple[str, str]:
    outcome = customize(_object(NAMED, data={}), customizer, LOCATION)
    assert isinstance(outcome, Withheld)
    return outcome.problem.reason, outcome.problem.message


def test_a_parameter_that_the_location_does_not_give_is_named() -> None:
    reason, message = _problem(_customizer(("$.data.k", "%(replicas)"), expand=True))
    assert reason == MISSING_PARAMETER
    assert message == (
        "Customizer shop/c, path '$.data.k': "
        "the Location has neither a label nor an annotation 'replicas'"
    )
    assert _problem(_customizer(("%(where)", "1"), expand=True)) == (
        MISSING_PARAMETER,
        "Customizer shop/c: the Location has neither a label nor an annotation 'where'",
    )


def test_a_parameter_that_the_customizer_does_not_ask_for_is_named() -> None:
    reason, message = _problem(_customizer(("$.data.k", "%(n)")))
    assert reason == MISSING_PARAMETER
    assert message.endswith(
        "%(n) is not expanded: annotate the Customizer with edge.kcp.io/expand-parameters=true"
    )
    # What is no JSON for another reason is still called that.
    assert _problem(_customizer(("$.data.k", "%(n)x"), expand=True))[0] == INVALID_VALUE
