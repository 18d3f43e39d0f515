"""CustomResourceDefinitions through kubectl: no wait between defining and using."""

from __future__ import annotations

from typing import Any

from tests.kit.e2e.manifests import Manifest, definition
from tests.kit.e2e.processes import Kubectl


def thing(group: str, kind: str, name: str, **spec: Any) -> Manifest:
    return {
        "apiVersion": f"{group}/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }


def test_a_kind_is_usable_when_its_definition_is_created(kubectl: Kubectl) -> None:
    group = "usable.example.org"
    kubectl("create", "-f", "-", stdin=definition(group, "boats", "Boat"))
    kubectl("create", "-f", "-", stdin=thing(group, "Boat", "b", size=3))
    head, row = kubectl.rows("get", "boats")
    assert head == ["NAME", "SIZE", "COLOUR"]
    assert row == ["b", "3", "red"]
    assert kubectl("get", "bo", "-o", "name").out == f"boat.{group}/b\n"
    assert f"boat.{group}/b" in kubectl("get", "all").out
    result = kubectl("wait", "--for=condition=Established", f"crd/boats.{group}", "--timeout=60s")
    assert "condition met" in result.out


def test_definition_and_object_may_come_in_one_apply(kubectl: Kubectl) -> None:
    group = "together.example.org"
    kubectl("apply", "--server-side", "-f", "-", stdin=definition(group, "rafts", "Raft"))
    for manner in ((), ("--server-side", "--force-conflicts")):
        for size in (1, 2):
            kubectl("apply", *manner, "-f", "-", stdin=thing(group, "Raft", "r", size=size))
    found = kubectl.json("get", "raft", "r")
    assert found["spec"] == {"size": 2, "colour": "red"}
    assert found["metadata"]["generation"] == 4


def test_explain_describe_edit_and_scale_work_for_custom_kinds(kubectl: Kubectl) -> None:
    group = "explained.example.org"
    kubectl("create", "-f", "-", stdin=definition(group, "ships", "Ship"))
    result = kubectl("explain", f"ships.{group}", "--recursive").out
    assert "KIND:       Ship" in result
    assert "size	<integer> -required-" in result
    # What kubectl shows since 1.30.
    described = kubectl("get", "--raw", f"/openapi/v3/apis/{group}/v1").out
    assert '"enum":["red","blue"]' in described
    assert "How large." in kubectl("explain", "ships.spec.size").out
    kubectl("create", "-f", "-", stdin=thing(group, "Ship", "s", size=1))
    assert "Colour:  red" in kubectl("describe", "ship", "s").out
    kubectl("scale", "ship/s", "--replicas=4")
    assert kubectl.json("get", "ship", "s")["spec"]["size"] == 4
    kubectl("edit", "ship", "s", EDITOR="sed -i 's/colour: red/colour: blue/'")
    assert kubectl.json("get", "ship", "s")["spec"]["colour"] == "blue"
    status = '{"status":{"size":4},"spec":{"size":9}}'
    kubectl("patch", "ship", "s", "--subresource=status", "--type=merge", "-p", status)
    found = kubectl.json("get", "ship", "s")
    assert (found["spec"]["size"], found["status"]["size"]) == (4, 4)


def test_invalid_custom_objects_are_refused_with_causes(kubectl: Kubectl) -> None:
    group = "refused.example.org"
    kubectl("create", "-f", "-", stdin=definition(group, "kayaks", "Kayak"))
    bad = thing(group, "Kayak", "k", size=0, colour="green")
    result = kubectl("create", "-f", "-", stdin=bad, fails=1).err
    assert 'The Kayak "k" is invalid:' in result
    assert "spec.size in body should be greater than or equal to 1" in result
    assert 'Unsupported value: "green": supported values: "red", "blue"' in result
    missing = kubectl("create", "-f", "-", stdin=thing(group, "Kayak", "k"), fails=1).err
    assert "spec.size: Required value" in missing
    unknown = thing(group, "Kayak", "k", size=1, shape="round")
    assert 'unknown field "spec.shape"' in kubectl("create", "-f", "-", stdin=unknown, fails=1).err


def test_a_schema_change_is_seen_at_once(kubectl: Kubectl) -> None:
    group = "changing.example.org"
    defined = definition(group, "dinghies", "Dinghy")
    kubectl("apply", "-f", "-", stdin=defined)
    schema = defined["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["sail"] = {"type": "string"}
    kubectl("apply", "-f", "-", stdin=defined)
    assert "sail	<string>" in kubectl("explain", "dinghies.spec").out
    kubectl("create", "-f", "-", stdin=thing(group, "Dinghy", "d", size=1, sail="white"))
    assert kubectl.json("get", "dinghy", "d")["spec"]["sail"] == "white"


def test_deleting_a_definition_deletes_its_objects_first(kubectl: Kubectl) -> None:
    group = "deleted.example.org"
    kubectl("create", "-f", "-", stdin=definition(group, "canoes", "Canoe"))
    held = thing(group, "Canoe", "held", size=1)
    held["metadata"]["finalizers"] = ["example.org/hold"]
    kubectl("create", "-f", "-", stdin=[held, thing(group, "Canoe", "free", size=1)])
    kubectl("delete", "crd", f"canoes.{group}", "--wait=false")
    kubectl.until("canoe.deleted.example.org/held\n", "get", "canoes", "-o", "name")
    kubectl("patch", "canoe", "held", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    kubectl("wait", "--for=delete", f"crd/canoes.{group}", "--timeout=60s")
    path = f"/apis/{group}/v1/canoes"
    result = kubectl("get", "--raw", path, fails=1).err
    assert "the server could not find the requested resource" in result


def test_a_bad_definition_is_refused_with_the_path_of_the_fault(kubectl: Kubectl) -> None:
    bad = definition("bad.example.org", "things", "Thing")
    bad["metadata"]["name"] = "other.bad.example.org"
    result = kubectl("create", "-f", "-", stdin=bad, fails=1).err
    assert 'must be spec.names.plural+"."+spec.group' in result
