"""The edit an explanation proposes does what it says."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.refs import ObjectRef
from skerry.logic.fleet.explanation.what import Subject, selected
from skerry.logic.fleet.translation.selected import what_of

KEYS = st.sampled_from(["env", "tier"])
VALUES = st.sampled_from(["a", "b", "other"])
labels = st.dictionaries(KEYS, VALUES)
expressions = st.one_of(
    st.builds(
        lambda key, operator, values: {"key": key, "operator": operator, "values": values},
        KEYS,
        st.sampled_from(["In", "NotIn"]),
        st.lists(VALUES, min_size=1, max_size=2),
    ),
    st.builds(
        lambda key, operator: {"key": key, "operator": operator},
        KEYS,
        st.sampled_from(["Exists", "DoesNotExist"]),
    ),
)
selectors = st.builds(
    lambda found, them: {"matchLabels": found, "matchExpressions": them},
    labels,
    st.lists(expressions, max_size=2),
)


def edited(found: dict[str, str], edit: str) -> dict[str, str]:
    """Return labels as the words of an edit leave them."""
    after = dict(found)
    for word in edit.partition(": ")[2].split():
        if word.endswith("-"):
            after.pop(word[:-1], None)
        else:
            key, _, value = word.partition("=")
            after[key] = value
    return after


@given(selectors, labels)
@settings(max_examples=200, deadline=None)
def test_labelling_the_namespace_turns_the_answer_around(
    selector: dict[str, Any], found: dict[str, str]
) -> None:
    what = what_of({"spec": {"namespaceSelector": selector}})
    item = ObjectRef("", "", "configmaps", "shop", "x")
    before = selected(what, Subject(item, {"metadata": {}}, found))
    if before.edit:
        after = selected(what, Subject(item, {"metadata": {}}, edited(found, before.edit)))
        assert after.holds is (not before.holds)
    elif before.holds:
        # Only a selector without demands lets nothing go.
        assert not selector["matchLabels"]
        assert not selector["matchExpressions"]


@given(selectors, labels)
@settings(max_examples=150, deadline=None)
def test_labelling_a_cluster_scoped_object_brings_it_in(
    selector: dict[str, Any], found: dict[str, str]
) -> None:
    entry = {"apiGroup": "", "resources": ["persistentvolumes"], "labelSelectors": [selector]}
    what = what_of({"spec": {"nonNamespacedObjects": [entry]}})
    item = ObjectRef("", "", "persistentvolumes", "", "x")
    before = selected(what, Subject(item, {"metadata": {"labels": found}}))
    if before.edit:
        after = edited(found, before.edit)
        assert selected(what, Subject(item, {"metadata": {"labels": after}})).holds
