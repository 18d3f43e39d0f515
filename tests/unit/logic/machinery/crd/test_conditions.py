"""Names, conflicts and conditions."""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.logic.machinery.crd import TakenNames, establish, established, ordered
from tests.kit.machinery.crds import NOW, cron_tab


def conditions(status: Object) -> dict[str, Object]:
    return {item["type"]: item for item in status["conditions"]}


def accepted(crd: Object) -> Object:
    return {**crd, "status": establish(crd, [], NOW)}


def named(plural: str, **names: Any) -> Object:
    crd = cron_tab()
    crd["metadata"]["name"] = f"{plural}.stable.example.com"
    crd["spec"]["names"] = {
        "plural": plural,
        "singular": f"{plural}-one",
        "kind": plural.capitalize(),
        "listKind": f"{plural.capitalize()}List",
        **names,
    }
    return crd


def test_a_definition_alone_is_established_at_once() -> None:
    status = establish(cron_tab(), [], NOW)
    assert conditions(status)["NamesAccepted"] == {
        "type": "NamesAccepted",
        "status": "True",
        "reason": "NoConflicts",
        "message": "no conflicts found",
        "lastTransitionTime": "2024-01-01T00:00:00Z",
    }
    assert conditions(status)["Established"]["reason"] == "InitialNamesAccepted"
    assert status["acceptedNames"] == cron_tab()["spec"]["names"]
    assert status["storedVersions"] == ["v1"]
    assert established({"status": status})


def test_establishing_twice_changes_nothing() -> None:
    crd = accepted(cron_tab())
    assert establish(crd, [crd], NOW + timedelta(hours=1)) == crd["status"]


def test_a_name_in_use_is_refused_and_reported() -> None:
    other = accepted(cron_tab())
    late = named("tasks", shortNames=["ct", "ta"])
    status = establish(late, [other], NOW)
    assert conditions(status)["NamesAccepted"]["reason"] == "ShortNamesConflict"
    assert conditions(status)["NamesAccepted"]["message"] == '"ct" is already in use'
    assert conditions(status)["Established"] == {
        "type": "Established",
        "status": "False",
        "reason": "NotAccepted",
        "message": "not all names are accepted",
        "lastTransitionTime": "2024-01-01T00:00:00Z",
    }
    assert "shortNames" not in status["acceptedNames"]
    assert status["acceptedNames"]["plural"] == "tasks"


def test_kinds_and_resources_are_separate_name_spaces() -> None:
    other = accepted(cron_tab())
    assert (
        conditions(establish(named("tasks", kind="CronTab"), [other], NOW))["NamesAccepted"][
            "reason"
        ]
        == "KindConflict"
    )
    assert (
        conditions(establish(named("tasks", singular="crontabs"), [other], NOW))["NamesAccepted"][
            "reason"
        ]
        == "SingularConflict"
    )
    assert established(
        {"status": establish(named("tasks", shortNames=["crontablist"]), [other], NOW)}
    )


def test_other_groups_do_not_conflict() -> None:
    other = accepted(cron_tab())
    elsewhere = cron_tab()
    elsewhere["spec"]["group"] = "other.example.com"
    elsewhere["metadata"]["name"] = "crontabs.other.example.com"
    assert established({"status": establish(elsewhere, [other], NOW)})


def test_reserved_names_conflict_like_any_other() -> None:
    reserved = TakenNames(resources=frozenset({"crontabs"}))
    status = establish(cron_tab(), [], NOW, reserved)
    assert conditions(status)["NamesAccepted"]["reason"] == "PluralConflict"


def test_names_are_free_again_when_their_owner_is_gone() -> None:
    other = accepted(cron_tab())
    late = named("tasks", shortNames=["ct"])
    late["status"] = establish(late, [other], NOW)
    later = establish(late, [], NOW + timedelta(minutes=1))
    assert established({"status": later})
    assert conditions(later)["Established"]["lastTransitionTime"] == "2024-01-01T00:01:00Z"


def test_once_established_a_new_conflict_does_not_stop_it() -> None:
    other, crd = accepted(cron_tab()), accepted(named("tasks"))
    crd["spec"]["names"]["shortNames"] = ["ct"]
    status = establish(crd, [other], NOW)
    assert conditions(status)["NamesAccepted"]["status"] == "False"
    assert established({"status": status})


def test_a_definition_that_preserves_unknown_fields_is_not_structural() -> None:
    crd = cron_tab()
    crd["spec"]["preserveUnknownFields"] = True
    found = conditions(establish(crd, [], NOW))["NonStructuralSchema"]
    assert found["status"] == "True"
    assert found["reason"] == "Violations"
    assert found["message"] == ("spec.preserveUnknownFields: Invalid value: true: must be false")
    mended = cron_tab()
    mended["status"] = {"conditions": [found]}
    assert "NonStructuralSchema" not in conditions(establish(mended, [], NOW))


def test_a_new_storage_version_is_remembered_beside_the_old() -> None:
    crd = accepted(cron_tab())
    crd["spec"]["versions"][0]["storage"] = False
    crd["spec"]["versions"].append(
        {**copy.deepcopy(crd["spec"]["versions"][0]), "name": "v2", "storage": True}
    )
    assert establish(crd, [], NOW)["storedVersions"] == ["v1", "v2"]


def test_versions_are_ordered_as_kubernetes_orders_them() -> None:
    wanted = [
        "v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1",
        "foo10",
    ]  # fmt: skip
    assert ordered(sorted(wanted)) == wanted


@settings(max_examples=100, deadline=None)
@given(st.lists(st.from_regex(r"v[1-9](alpha[1-9]|beta[1-9])?|[a-z]{1,3}", fullmatch=True)))
def test_the_order_of_versions_does_not_depend_on_how_they_came(versions: list[str]) -> None:
    assert ordered(versions) == ordered(reversed(versions))
