"""Which finished Jobs and old revisions are kept."""

from __future__ import annotations

import json

from skerry.logic.machinery.plan import Create, Delete, Patch
from skerry.logic.workloads.history import (
    REVISION_LABEL,
    forgotten,
    revised,
    revision_data,
    template_of,
)
from tests.kit.workload_parts import owner


class TestHistory:
    def test_a_new_template_is_a_new_highest_revision(self) -> None:
        first = revised(owner(), "DaemonSet", [])
        (creation,) = first.actions
        assert isinstance(creation, Create)
        assert creation.object["revision"] == 1
        assert creation.object["metadata"]["labels"][REVISION_LABEL] == first.hash
        assert revised(owner(), "DaemonSet", [creation.object]).actions == ()

    def test_the_first_status_gives_a_template_no_other_revision(self) -> None:
        reported = owner()
        reported["status"] = {"collisionCount": 0}
        assert revised(reported, "StatefulSet", []).name == revised(owner(), "StatefulSet", []).name
        reported["status"] = {"collisionCount": 1}
        assert revised(reported, "StatefulSet", []).name != revised(owner(), "StatefulSet", []).name

    def test_a_revision_has_the_annotations_that_its_owner_had_then(self) -> None:
        made = owner()
        made["metadata"]["annotations"] = {"kubernetes.io/change-cause": "kubectl apply"}
        (creation,) = revised(made, "DaemonSet", []).actions
        assert isinstance(creation, Create)
        assert creation.object["metadata"]["annotations"] == made["metadata"]["annotations"]
        (plain,) = revised(owner(), "DaemonSet", []).actions
        assert isinstance(plain, Create)
        assert "annotations" not in plain.object["metadata"]

    def test_revisions_are_written_as_kubernetes_controllers_write_them(self) -> None:
        made = owner()
        made["spec"]["template"] = {
            "spec": {"containers": [{"name": "c", "image": "i"}]},
            "metadata": {"labels": {"b": "1", "a": "2"}},
        }
        (creation,) = revised(made, "DaemonSet", []).actions
        assert isinstance(creation, Create)
        assert json.dumps(creation.object["data"], separators=(",", ":")) == (
            '{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null,'
            '"labels":{"a":"2","b":"1"}},"spec":{"containers":[{"image":"i","name":"c",'
            '"resources":{}}]}}}}'
        )
        assert template_of(creation.object)["metadata"] == {"labels": {"a": "2", "b": "1"}}

    def test_a_revision_of_an_earlier_version_is_still_the_templates(self) -> None:
        """Another name for it would restart every pod."""
        (creation,) = revised(owner(), "DaemonSet", []).actions
        assert isinstance(creation, Create)
        former = {**creation.object, "data": revision_data(owner())}
        found = revised(owner(), "DaemonSet", [former])
        assert (found.name, found.actions) == (creation.target.name, ())

    def test_going_back_gives_the_old_revision_a_new_number(self) -> None:
        (creation,) = revised(owner(), "DaemonSet", []).actions
        assert isinstance(creation, Create)
        old = {**creation.object, "metadata": {**creation.object["metadata"], "uid": "r1"}}
        newer = {**old, "revision": 2, "data": {}, "metadata": {**old["metadata"], "name": "n"}}
        (patch,) = revised(owner(), "DaemonSet", [old, newer]).actions
        assert isinstance(patch, Patch)
        assert patch.patch["revision"] == 3

    def test_unused_revisions_beyond_the_limit_are_forgotten_oldest_first(self) -> None:
        revisions = [
            {
                "metadata": {
                    "name": f"r{n}",
                    "namespace": "ns",
                    "uid": f"u{n}",
                    "labels": {REVISION_LABEL: str(n)},
                },
                "revision": n,
            }
            for n in range(5)
        ]
        gone = forgotten(revisions, {"0", "4"}, 1)
        assert [action.uid for action in gone if isinstance(action, Delete)] == ["u1", "u2"]
