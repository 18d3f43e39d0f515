"""The whole chain, link by link: each can be the one that breaks, and says so."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from skerry.api.edge import APPLIED, CAUSE, SYNC_ERROR, edge_placement_ref
from skerry.api.kcp.resources import workspace_ref
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.customization.customize import CustomizerName
from skerry.logic.fleet.explanation.answer import Facts, answer
from skerry.logic.fleet.explanation.silence import Silence
from skerry.logic.fleet.explanation.standing import Standing
from skerry.logic.fleet.explanation.text import answer_text
from skerry.logic.fleet.explanation.what import Subject
from skerry.logic.fleet.placement.destination import DestinationTable
from skerry.logic.fleet.placement.grants import grant_of
from skerry.logic.fleet.placement.records import (
    Destination,
    location_of,
    placement_of,
    sync_target_of,
)
from skerry.logic.fleet.syncing.delivery import content_mark
from skerry.logic.fleet.translation.copies import copied, labelled
from skerry.logic.fleet.translation.selected import what_of
from tests.kit.chain import building

Raw = dict[str, Any]
PLACE = edge_placement_ref("wmw", "p")
WEB = ObjectRef("", "apps", "deployments", "shop", "web")
MAILBOX = "imw-mb-u1"


def located(obj: Raw, cluster: str = "imw") -> Raw:
    obj["metadata"].setdefault("annotations", {})["kcp.io/cluster"] = cluster
    return obj


def deployment(**annotations: str) -> Raw:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "annotations": annotations},
        "spec": {"replicas": 1},
    }


def placement(**spec: Any) -> Raw:
    return located(
        {
            "metadata": {"name": "p"},
            "spec": {
                "locationSelectors": [{"matchLabels": {"env": "prod"}}],
                "namespaceSelector": {"matchLabels": {"go": "yes"}},
                **spec,
            },
        },
        "wmw",
    )


class Story:
    """A world in which everything is well; tests break one thing."""

    def __init__(self, **spec: Any) -> None:
        self.placement = placement(**spec)
        self.location = located(
            {
                "metadata": {"name": "florin", "labels": {"env": "prod"}},
                "spec": {"instanceSelector": {}},
            }
        )
        self.targets = [located({"metadata": {"name": "st", "uid": "u1", "labels": {}}})]
        self.slices = {Destination("imw", "florin", "st", "u1")}
        self.mailboxes: dict[str, Raw] = {
            MAILBOX: {"metadata": {"name": MAILBOX}, "status": {"phase": "Ready"}}
        }
        self.unreadable: dict[str, str] = {}
        self.subject = Subject(WEB, deployment(), {"go": "yes"})
        self.customizers: dict[CustomizerName, Raw] = {}
        self.silences: dict[str, Silence | None] = {}
        self.copy: Raw | None = None
        self.grants: list[Raw] = []
        self.deliver()

    def deliver(self) -> None:
        """Put the copy into the mailbox, have it applied and its health reported."""
        made: Raw = copy.deepcopy(labelled(copied(WEB.group_resource, self.subject.object)))
        made["metadata"] |= {"generation": 1}
        made["metadata"].setdefault("annotations", {})[APPLIED] = content_mark(made)
        made["status"] = {"replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}
        self.copy = made

    def facts(self) -> Facts:
        index = DestinationTable()
        index.put_placement(placement_of(self.placement))
        location = location_of(self.location)
        index.put_location(location)
        for target in self.targets:
            index.put_sync_target(sync_target_of(target))
        for name in ("imw", "wmw"):
            index.put_workspace(name, {}, workspace_ref("root", name))
        for grant in self.grants:
            index.put_grant(grant_of(grant))
        return Facts(
            PLACE,
            what_of(self.placement),
            index,
            {location.ref: self.location},
            Standing(frozenset(self.slices), frozenset(d.location_ref for d in self.slices)),
            self.mailboxes,
            self.unreadable,
            [self.subject],
            self.customizers,
            {} if self.copy is None else {(MAILBOX, self.subject.item): self.copy},
            lambda _: True,
            silences=self.silences,
            paths={"imw": "root:imw", "wmw": "root:wmw", "other": "root:other"},
        )

    def outcome(self) -> tuple[str, str, str]:
        """Return the step that breaks, its reason and the edit that would mend it."""
        (pair,) = answer(self.facts(), every_pair=True).pairs
        broken = pair.chain.broken
        return ("", "Healthy", "") if broken is None else (broken.step, broken.reason, broken.edit)


def test_when_nothing_breaks_the_object_is_healthy_at_its_destination() -> None:
    story = Story()
    found = answer(story.facts())
    assert [each.link.holds for each in found.locations] == [True]
    assert [each.link.holds for each in found.objects] == [True]
    (pair,) = found.pairs
    assert pair.chain.outcome == "Healthy"
    assert pair.chain.delivered
    assert [link.step for link in pair.chain.links] == [
        "category",
        "selection",
        "location",
        "customization",
        "mailbox",
        "copy",
        "applied",
        "health",
    ]


def test_a_location_selector_names_the_term_that_fails_and_the_smallest_edit() -> None:
    story = Story()
    story.location["metadata"]["labels"] = {"env": "dev"}
    assert story.outcome() == (
        "location",
        "LocationNotSelected",
        "label Location florin: env=prod",
    )
    (location,) = answer(story.facts()).locations
    assert "it is 'dev'" in location.link.messages[0]


def test_a_location_that_refuses_the_workspace_says_by_which_grant() -> None:
    story = Story()
    story.grants = [building.grant("eu-only", paths=["root:other"], selector={})]
    story.slices = set()
    story.copy = None
    assert story.outcome()[:2] == ("location", "NotGranted")
    found = answer(story.facts())
    (location,) = found.locations
    assert location.link.messages == ("not granted by root:imw/eu-only",)
    assert "no: NotGranted" in answer_text(found)


def test_what_is_held_is_a_destination_and_says_so() -> None:
    story = Story()
    story.grants = [building.grant("eu-only", paths=["root:other"], selector={})]
    assert story.outcome()[:2] == ("grant", "Held")
    text = answer_text(answer(story.facts()))
    assert "yes: Held" in text
    assert "stays until its removal is confirmed" in text


def test_a_kind_that_is_not_granted_breaks_after_the_location() -> None:
    secrets = {"apiGroups": [""], "resources": ["secrets"]}
    apps = {"apiGroups": ["apps"], "resources": ["*"]}
    story = Story()
    story.grants = [building.grant("g", paths=["root:wmw"], selector={}, rules=[secrets])]
    assert story.outcome()[:2] == ("grant", "Held")
    story.copy = None
    assert story.outcome()[:2] == ("grant", "NotGranted")
    (pair,) = answer(story.facts(), every_pair=True).pairs
    assert pair.chain.links[-1].messages == (
        "deployments.apps shop/web is not granted by root:imw/g",
    )
    story.grants = [building.grant("g", paths=["root:wmw"], selector={}, rules=[secrets, apps])]
    story.deliver()
    assert story.outcome()[:2] == ("", "Healthy")


def test_a_location_without_sync_target_leads_nowhere() -> None:
    story = Story()
    story.targets = []
    assert story.outcome()[:2] == ("location", "NoSyncTarget")


def test_a_destination_that_is_in_no_slice_waits_for_the_scheduler() -> None:
    story = Story()
    story.slices = set()
    assert story.outcome()[:2] == ("location", "NotYetScheduled")


def test_a_namespace_that_is_not_selected_can_be_labelled_so() -> None:
    story = Story()
    story.subject = replace(story.subject, within={"go": "no"})
    assert story.outcome() == (
        "selection",
        "NamespaceNotSelected",
        "label Namespace shop: go=yes",
    )
    story.subject = replace(story.subject, within=None)
    assert story.outcome()[1] == "NamespaceMissing"


@pytest.mark.parametrize(
    ("item", "obj", "reason"),
    [
        (ObjectRef("", "", "events", "shop", "e"), {}, "NotForTheEdge"),
        (ObjectRef("", "apiregistration.k8s.io", "apiservices", "", "a"), {}, "UnsupportedKind"),
        (ObjectRef("", "", "configmaps", "shop", "kube-root-ca.crt"), {}, "SystemObject"),
    ],
)
def test_some_kinds_and_objects_never_travel(item: ObjectRef, obj: Raw, reason: str) -> None:
    story = Story()
    subject = {"apiVersion": "v1", "kind": "X", "metadata": {"name": item.name}, **obj}
    story.subject = Subject(item, subject, {"go": "yes"})
    assert story.outcome()[:2] == ("category", reason)


@pytest.mark.parametrize(
    ("entries", "message", "edit"),
    [
        ([], "spec.nonNamespacedObjects is empty, which selects nothing", ""),
        (
            [{"apiGroup": "x", "resources": ["clusterroles"], "resourceNames": ["*"]}],
            "nonNamespacedObjects[0]: apiGroup is 'x'; it is 'rbac.authorization.k8s.io'",
            "",
        ),
        (
            [{"apiGroup": "rbac.authorization.k8s.io", "resources": ["roles"]}],
            "nonNamespacedObjects[0]: 'clusterroles' is not among the resources",
            "",
        ),
        (
            [
                {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "resources": ["clusterroles"],
                    "resourceNames": ["other"],
                    "labelSelectors": [
                        {"matchLabels": {"a": "b", "c": "d"}},
                        {"matchLabels": {"e": "f"}},
                    ],
                }
            ],
            "nonNamespacedObjects[0]: 'admin' is not among the resourceNames",
            "label clusterroles.rbac.authorization.k8s.io admin: e=f",
        ),
    ],
)
def test_a_cluster_scoped_object_reports_which_entry_misses_it_and_why(
    entries: list[Raw], message: str, edit: str
) -> None:
    story = Story(nonNamespacedObjects=entries)
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "admin"},
    }
    story.subject = Subject(
        ObjectRef("", "rbac.authorization.k8s.io", "clusterroles", "", "admin"), role
    )
    assert story.outcome() == ("selection", "ObjectNotSelected", edit)
    (found,) = answer(story.facts()).objects
    assert found.link.messages[0] == message


def test_what_defines_a_placed_kind_goes_along_unasked() -> None:
    story = Story()
    widget = ObjectRef("", "example.org", "widgets", "shop", "w")
    crd = ObjectRef(
        "", "apiextensions.k8s.io", "customresourcedefinitions", "", "widgets.example.org"
    )
    definition = {
        "metadata": {"name": crd.name},
        "spec": {"group": "example.org", "names": {"plural": "widgets"}},
    }
    subjects = [
        Subject(crd, definition),
        Subject(widget, {"metadata": {"name": "w"}}, {"go": "yes"}),
    ]
    found = {
        each.item: each.link for each in answer(replace(story.facts(), subjects=subjects)).objects
    }
    assert found[crd].reason == "Implied"
    assert found[crd].holds
    alone = answer(replace(story.facts(), subjects=subjects[:1])).objects
    assert [each.link.reason for each in alone] == ["ObjectNotSelected"]


def test_a_missing_customizer_withholds_the_object() -> None:
    story = Story()
    story.subject = replace(story.subject, object=deployment(**{"edge.kcp.io/customizer": "c"}))
    assert story.outcome()[:2] == ("customization", "CustomizerNotFound")
    story.customizers[CustomizerName("shop", "c")] = {
        "metadata": {"name": "c"},
        "replacements": [{"path": "$.spec.replicas", "value": "1"}],
    }
    story.deliver()
    assert story.outcome()[1] == "Healthy"


def test_a_mailbox_may_be_missing_going_unready_or_unreadable() -> None:
    story = Story()
    mailbox = story.mailboxes.pop(MAILBOX)
    assert story.outcome()[:2] == ("mailbox", "NoMailbox")
    story.mailboxes[MAILBOX] = {**mailbox, "status": {"phase": "Initializing"}}
    assert story.outcome()[:2] == ("mailbox", "MailboxNotReady")
    story.mailboxes[MAILBOX] = {"metadata": {"deletionTimestamp": "now"}}
    assert story.outcome()[:2] == ("mailbox", "MailboxGoing")
    story.mailboxes[MAILBOX] = mailbox
    story.unreadable[MAILBOX] = "forbidden"
    assert story.outcome()[:2] == ("mailbox", "MailboxUnreadable")


def test_a_copy_may_be_missing_old_or_somebody_elses() -> None:
    story = Story()
    assert story.copy is not None
    story.copy["spec"]["replicas"] = 7
    assert story.outcome()[:2] == ("copy", "CopyDiffers")
    del story.copy["metadata"]["labels"]
    assert story.outcome()[:2] == ("copy", "NameOccupied")
    story.copy = None
    assert story.outcome()[:2] == ("copy", "NotInMailbox")


@pytest.mark.parametrize(
    ("inert", "reason"), [(True, "NotInMailbox"), (False, "KindWithheld")], ids=["ours", "foreign"]
)
def test_what_would_act_on_a_foreign_hub_is_said_to_be_withheld_there(
    inert: bool, reason: str
) -> None:
    story = Story()
    role = ObjectRef("", "rbac.authorization.k8s.io", "roles", "shop", "reader")
    story.subject = Subject(
        role, {"metadata": {"name": "reader", "namespace": "shop"}}, {"go": "yes"}
    )
    story.copy = None
    (pair,) = answer(replace(story.facts(), copies_are_inert=inert), every_pair=True).pairs
    assert pair.chain.broken is not None
    assert (pair.chain.broken.step, pair.chain.broken.reason) == ("copy", reason)


def test_a_copy_may_be_not_applied_refused_or_unhealthy() -> None:
    story = Story()
    assert story.copy is not None
    story.copy["status"]["availableReplicas"] = 0
    assert story.outcome()[:2] == ("health", "Unavailable")
    story.copy["metadata"]["generation"] = 2
    assert story.outcome()[:2] == ("applied", "NotApplied")
    story.copy["metadata"]["annotations"][SYNC_ERROR] = "Forbidden: no"
    assert story.outcome()[:2] == ("applied", "Forbidden")


@pytest.mark.parametrize("has_status", [True, False])
def test_the_cause_at_the_edge_is_the_reason(has_status: bool) -> None:
    story = Story()
    assert story.copy is not None
    story.copy["status"]["availableReplicas"] = 0
    story.copy["metadata"]["annotations"][CAUSE] = "ImagePullBackOff: no such image"
    facts = replace(story.facts(), has_status=lambda _: has_status)
    (pair,) = answer(facts, every_pair=True).pairs
    assert pair.chain.broken is not None
    assert (pair.chain.broken.step, pair.chain.broken.reason) == ("health", "ImagePullBackOff")
    assert pair.chain.broken.messages == ("no such image",)


def test_the_text_reports_everything_a_person_needs() -> None:
    story = Story()
    story.location["metadata"]["labels"] = {"env": "dev"}
    text = answer_text(answer(story.facts()))
    assert text.splitlines()[0] == ("EdgePlacement p in root:wmw: 0 of 1 locations, 1 of 1 objects")
    assert "florin     root:imw    no: LocationNotSelected" in text
    assert "imw|" not in text
    assert "to change that: label Location florin: env=prod" in text


def test_the_json_names_each_link() -> None:
    found = answer(Story().facts()).as_json()
    assert found["locations"][0]["destination"] is True
    assert found["objects"][0]["object"] == {
        "group": "apps",
        "resource": "deployments",
        "namespace": "shop",
        "name": "web",
    }
    assert found["pairs"][0]["outcome"] == "Healthy"
    assert found["pairs"][0]["links"][-1] == {
        "step": "health",
        "table": "report",
        "holds": True,
        "reason": "Healthy",
    }


def test_an_edge_that_was_not_heard_of_is_unknown_whatever_it_said_last() -> None:
    story = Story()
    story.silences = {"u1": Silence("LeaseLapsed", "last heard of 90 s ago")}
    (pair,) = answer(story.facts()).pairs
    broken = pair.chain.broken
    assert broken is not None
    assert (broken.step, broken.holds, broken.reason) == ("edge", None, "LeaseLapsed")
    assert broken.messages == ("what is there is not known: st last heard of 90 s ago",)


def test_a_name_that_another_workspace_has_names_its_path_and_what_to_do() -> None:
    story = Story()
    assert story.copy is not None
    story.copy["metadata"]["annotations"]["edge.kcp.io/owner-workspace"] = "other"
    assert story.outcome()[1] == "Healthy", "the same content is no conflict"
    story.copy["spec"]["replicas"] = 7
    (pair,) = answer(story.facts()).pairs
    broken = pair.chain.broken
    assert broken is not None
    assert (broken.step, broken.reason) == ("copy", "NameTaken")
    assert "belongs to workspace root:other" in broken.messages[0]
    assert "edge.kcp.io/hand-over-to" in broken.edit
    story.copy["metadata"]["annotations"]["edge.kcp.io/owner-workspace"] = "wmw"
    assert story.outcome()[:2] == ("copy", "CopyDiffers")


def test_the_cause_at_the_edge_is_the_answer() -> None:
    story = Story()
    assert story.copy is not None
    story.copy["status"]["availableReplicas"] = 0
    story.copy["metadata"]["annotations"]["edge.kcp.io/cause"] = "ImagePullBackOff: no such image"
    (pair,) = answer(story.facts()).pairs
    broken = pair.chain.broken
    assert broken is not None
    assert (broken.reason, broken.messages) == ("ImagePullBackOff", ("no such image",))
