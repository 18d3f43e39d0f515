"""Whether a placement means an object: the term that fails, the entry it fails in, and the edit."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.edge_identity import BOOTSTRAP_TYPE
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef, namespace_ref
from skerry.logic.fleet.explanation.what import (
    Subject,
    defined_by,
    label_edit,
    selected,
    selections,
    travelling,
)
from skerry.logic.fleet.translation.selected import What, what_of

ROLES = {"apiGroup": "rbac.authorization.k8s.io", "resources": ["clusterroles"]}
READER = ObjectRef("", "rbac.authorization.k8s.io", "clusterroles", "", "reader")
PAGE = ObjectRef("", "", "configmaps", "shop", "page")
CRD = ObjectRef("", "apiextensions.k8s.io", "customresourcedefinitions", "", "widgets.test.example")
WIDGET = ObjectRef("", "test.example", "widgets", "shop", "w")


def subject(item: ObjectRef, within: dict[str, str] | None = None, **labels: str) -> Subject:
    named = {"name": item.name, "namespace": item.namespace, "labels": labels}
    return Subject(item, {"metadata": named}, within)


def meaning(**spec: Any) -> What:
    return what_of({"spec": spec})


def named(*entries: Object) -> What:
    nowhere = {"matchLabels": {"no": "where"}}
    return meaning(namespaceSelector=nowhere, nonNamespacedObjects=list(entries))


@pytest.mark.parametrize(
    ("item", "obj", "holds", "reason"),
    [
        (PAGE, {}, True, ""),
        (ObjectRef("", "", "events", "shop", "e"), {}, False, "NotForTheEdge"),
        (ObjectRef("", "", "configmaps", "shop", "kube-root-ca.crt"), {}, False, "SystemObject"),
        (
            ObjectRef("", "", "secrets", "shop", "s"),
            {"type": BOOTSTRAP_TYPE},
            False,
            "SystemObject",
        ),
    ],
)
def test_whether_objects_like_it_travel_at_all(
    item: ObjectRef, obj: Object, holds: bool, reason: str
) -> None:
    found = travelling(Subject(item, {"metadata": {"name": item.name}, **obj}))
    assert (found.holds, found.reason) == (holds, reason)
    assert bool(found.messages) is not holds, "a refusal is explained"


def test_an_object_is_meant_with_its_namespace() -> None:
    what = meaning(namespaceSelector={"matchLabels": {"app": "web"}})
    assert selected(what, subject(PAGE, {"app": "web"})).holds
    other = selected(what, subject(PAGE, {"app": "db"}))
    assert (other.holds, other.reason) == (False, "NamespaceNotSelected")
    assert other.messages == ("namespaceSelector: label 'app' must satisfy 'in (web)'; it is 'db'",)
    assert other.edit == "label Namespace shop: app=web"
    gone = selected(what, subject(PAGE))
    assert (gone.reason, gone.messages) == ("NamespaceMissing", ("there is no Namespace shop",))


def test_a_namespace_is_meant_by_its_own_labels() -> None:
    what = meaning(namespaceSelector={"matchLabels": {"app": "web"}})
    assert selected(what, subject(namespace_ref("shop"), app="web")).holds
    absent = selected(what, subject(namespace_ref("shop")))
    assert absent.messages[0].endswith("it is absent")


def test_what_is_meant_says_how_it_would_not_be() -> None:
    what = meaning(namespaceSelector={"matchLabels": {"app": "web"}})
    assert selected(what, subject(PAGE, {"app": "web"})).edit == "label Namespace shop: app-"
    everything = meaning(namespaceSelector={})
    assert selected(everything, subject(PAGE, {})).edit == "", "no label keeps it out"
    without = meaning(
        namespaceSelector={"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}
    )
    assert selected(without, subject(PAGE, {})).edit == "label Namespace shop: app=other"


def test_a_malformed_selector_means_nobody_knows_what() -> None:
    found = selected(None, subject(PAGE, {}))
    assert (found.holds, found.reason) == (None, "InvalidSelector")


def test_cluster_scoped_objects_are_meant_by_name_or_label() -> None:
    by_name = named({**ROLES, "resourceNames": ["reader"]})
    assert selected(by_name, subject(READER)).holds
    by_label = named({**ROLES, "labelSelectors": [{"matchLabels": {"team": "a"}}]})
    assert selected(by_label, subject(READER, team="a")).holds
    empty = selected(meaning(), subject(READER))
    assert empty.reason == "ObjectNotSelected"
    assert "selects nothing" in empty.messages[0]


def test_each_entry_says_why_it_does_not_mean_the_object() -> None:
    what = named(
        {"apiGroup": "apps", "resources": ["*"], "resourceNames": ["*"]},
        {**ROLES, "resources": ["clusterrolebindings"], "resourceNames": ["*"]},
        {
            **ROLES,
            "resourceNames": ["writer"],
            "labelSelectors": [{"matchLabels": {"team": "a", "tier": "1"}}],
        },
        {**ROLES, "labelSelectors": [{"matchLabels": {"team": "b"}}]},
    )
    found = selected(what, subject(READER, team="c"))
    assert not found.holds
    group, resource, name, *labels = found.messages
    assert group == (
        "nonNamespacedObjects[0]: apiGroup is 'apps'; it is 'rbac.authorization.k8s.io'"
    )
    assert resource == "nonNamespacedObjects[1]: 'clusterroles' is not among the resources"
    assert name == "nonNamespacedObjects[2]: 'reader' is not among the resourceNames"
    assert labels[0].startswith("nonNamespacedObjects[2].labelSelectors[0]: label 'team'")
    # The entry that asks for least.
    assert found.edit == "label clusterroles.rbac.authorization.k8s.io reader: team=b"


def test_a_definition_goes_along_with_what_it_defines() -> None:
    what = meaning(namespaceSelector={"matchLabels": {"app": "web"}})
    definition = Subject(
        CRD,
        {
            "metadata": {"name": CRD.name},
            "spec": {"group": "test.example", "names": {"plural": "widgets"}},
        },
    )
    widget = subject(WIDGET, {"app": "web"})
    alone, _ = selections(what, [definition, subject(WIDGET, {"app": "db"})])
    assert not alone.holds
    along, itself = selections(what, [definition, widget])
    assert itself.holds
    assert (along.holds, along.reason) == (True, "Implied")
    assert along.messages == ("it defines widgets.test.example",)


def test_a_definition_goes_along_with_what_may_come_up_from_the_edge() -> None:
    up = {"apiGroup": "test.example", "resources": ["widgets"]}
    nowhere = {"matchLabels": {"no": "where"}}
    definition = Subject(
        CRD,
        {
            "metadata": {"name": CRD.name},
            "spec": {"group": "test.example", "names": {"plural": "widgets"}},
        },
    )
    [along] = selections(meaning(namespaceSelector=nowhere, upsync=[up]), [definition])
    assert (along.holds, along.reason) == (True, "Implied")
    other = {**up, "resources": ["gadgets"]}
    [alone] = selections(meaning(namespaceSelector=nowhere, upsync=[other]), [definition])
    assert not alone.holds
    [unknown] = selections(None, [definition])
    assert unknown.holds is None, "a malformed placement implies nothing"


def test_a_namespace_that_is_named_and_not_chosen_is_not_sent() -> None:
    every = {"apiGroup": "", "resources": ["namespaces"], "resourceNames": ["*"]}
    found = selected(named(every), subject(namespace_ref("shop")))
    assert (found.holds, found.reason) == (False, "NamespaceNotSelected")


def test_a_binding_defines_what_it_has_bound() -> None:
    item = ObjectRef("", "apis.kcp.io", "apibindings", "", "b")
    bound = [{"group": "test.example", "resource": "widgets"}]
    found = defined_by(Subject(item, {"status": {"boundResources": bound}}))
    assert [str(each) for each in found] == ["widgets.test.example"]
    assert list(defined_by(Subject(item, {}))) == []
    assert list(defined_by(subject(PAGE))) == []


def test_no_edit_is_no_words() -> None:
    assert label_edit("Namespace shop", None) == label_edit("Namespace shop", ()) == ""
