"""kubectl create, apply, edit, patch, label, scale, replace, diff and wait."""

from __future__ import annotations

import json
from pathlib import Path

from tests.kit.e2e.manifests import config_map, deployment, pod
from tests.kit.e2e.processes import Kubectl


def test_create_makes_every_kind_it_has_a_command_for(kubectl: Kubectl) -> None:
    for arguments in (
        ("configmap", "c", "--from-literal=a=b"),
        ("secret", "generic", "s", "--from-literal=a=b"),
        ("deployment", "d", "--image=registry.example/app:1", "--replicas=2"),
        ("job", "j", "--image=registry.example/app:1"),
        ("cronjob", "cj", "--image=registry.example/app:1", "--schedule=*/5 * * * *"),
        ("service", "clusterip", "svc", "--tcp=80:8080"),
        ("service", "nodeport", "np", "--tcp=80:8080"),
        ("serviceaccount", "robot"),
        ("role", "reader", "--verb=get,list", "--resource=pods"),
        ("rolebinding", "readers", "--role=reader", "--serviceaccount=default:robot"),
        ("quota", "q", "--hard=pods=10"),
        ("poddisruptionbudget", "pdb", "--selector=app=x", "--min-available=1"),
        ("ingress", "i", "--rule=example.org/path=svc:80"),
    ):
        assert "created" in kubectl("create", *arguments).out
    assert "created" in kubectl("run", "runner", "--image=registry.example/app:1").out
    assert kubectl("expose", "pod", "runner", "--port=80").out == "service/runner exposed\n"
    assert kubectl("autoscale", "deployment", "d", "--max=3").out.endswith("autoscaled\n")


def test_creating_twice_is_reported_as_already_exists(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "c")
    result = kubectl("create", "configmap", "c", fails=1).err
    assert result == 'error: failed to create configmap: configmaps "c" already exists\n'
    result = kubectl("create", "-f", "-", stdin=config_map("c"), fails=1).err
    assert '(AlreadyExists): error when creating "STDIN": configmaps "c" already exists' in result


def test_generate_name_gives_each_create_its_own_name(kubectl: Kubectl) -> None:
    manifest = config_map("")
    manifest["metadata"] = {"generateName": "made-"}
    names = {kubectl("create", "-f", "-", "-o", "name", stdin=manifest).out for _ in range(3)}
    assert len(names) == 3
    assert all(name.startswith("configmap/made-") for name in names)


def test_dry_run_checks_but_stores_nothing(kubectl: Kubectl) -> None:
    result = kubectl("create", "--dry-run=server", "-f", "-", stdin=pod("solo"), fails=None).out
    assert result == "pod/solo created (server dry run)\n"
    assert kubectl("get", "pods", "-o", "name").out == ""
    broken = pod("solo")
    broken["spec"]["containers"][0]["name"] = "Not A Name"
    assert (
        "Invalid value"
        in kubectl("create", "--dry-run=server", "-f", "-", stdin=broken, fails=1).err
    )
    kubectl("create", "-f", "-", stdin=pod("solo"))
    assert "(server dry run)" in kubectl("delete", "pod", "solo", "--dry-run=server").out
    assert kubectl("get", "pods", "-o", "name").out == "pod/solo\n"


def test_field_validation_warns_refuses_or_ignores(kubectl: Kubectl) -> None:
    manifest = {**config_map("c"), "colour": "red"}
    strict = kubectl("create", "-f", "-", stdin=manifest, fails=1).err
    assert 'strict decoding error: unknown field "colour"' in strict
    warned = kubectl("create", "--validate=warn", "-f", "-", stdin=manifest)
    assert 'Warning: unknown field "colour"' in warned.err
    assert warned.out == "configmap/c created\n"
    ignored = kubectl("replace", "--validate=ignore", "-f", "-", stdin=manifest)
    assert ignored.err == ""


def test_apply_creates_then_changes_then_leaves_alone(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", "-", stdin=deployment("web")).out.endswith("created\n")
    assert kubectl("apply", "-f", "-", stdin=deployment("web")).out.endswith("unchanged\n")
    changed = kubectl("apply", "-f", "-", stdin=deployment("web", replicas=3)).out
    assert changed == "deployment.apps/web configured\n"
    assert kubectl.json("get", "deployment", "web")["metadata"]["generation"] == 2
    without = deployment("web")
    del without["spec"]["replicas"]
    kubectl("apply", "-f", "-", stdin=without)
    assert kubectl.json("get", "deployment", "web")["spec"]["replicas"] == 1


def test_apply_prunes_what_left_the_set(kubectl: Kubectl) -> None:
    def labelled(name: str) -> dict[str, object]:
        manifest = config_map(name)
        manifest["metadata"]["labels"] = {"set": "one"}
        return manifest

    kubectl("apply", "-f", "-", stdin=[labelled("a"), labelled("b")])
    result = kubectl(
        *("apply", "--prune", "-l", "set=one", "--prune-allowlist=core/v1/ConfigMap", "-f", "-"),
        stdin=labelled("a"),
    ).out
    assert "configmap/b pruned" in result
    assert kubectl("get", "cm", "-l", "set=one", "-o", "name").out == "configmap/a\n"


def test_server_side_apply_names_the_manager_it_conflicts_with(kubectl: Kubectl) -> None:
    first = kubectl("apply", "--server-side", "-f", "-", stdin=deployment("web", 1))
    assert first.out == "deployment.apps/web serverside-applied\n"
    kubectl("scale", "deployment", "web", "--replicas=5")
    result = kubectl("apply", "--server-side", "-f", "-", stdin=deployment("web", 2), fails=1).err
    assert (
        'conflict with "kubectl" with subresource "scale" using apps/v1: .spec.replicas' in result
    )
    assert kubectl.json("get", "deployment", "web")["spec"]["replicas"] == 5
    kubectl(*("apply", "--server-side", "--force-conflicts", "-f", "-"), stdin=deployment("web", 2))
    assert kubectl.json("get", "deployment", "web")["spec"]["replicas"] == 2


def test_two_managers_share_an_object_and_withdraw(kubectl: Kubectl) -> None:
    def applied(manager: str, **data: str) -> None:
        kubectl(
            *("apply", "--server-side", f"--field-manager={manager}", "-f", "-"),
            stdin=config_map("shared", **data),
        )

    applied("one", a="1", both="x")
    applied("two", b="2", both="x")
    assert kubectl.json("get", "cm", "shared")["data"] == {"a": "1", "b": "2", "both": "x"}
    applied("one")
    assert kubectl.json("get", "cm", "shared")["data"] == {"b": "2", "both": "x"}
    shown = kubectl("get", "cm", "shared", "-o", "yaml", "--show-managed-fields").out
    assert "manager: two" in shown


def test_client_side_applies_migrate_to_server_side(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=[pod("solo", a="b"), deployment("web")])
    again = kubectl("apply", "--server-side", "-f", "-", stdin=[pod("solo"), deployment("web")])
    assert again.out.count("serverside-applied") == 2
    assert "labels" not in kubectl.json("get", "pod", "solo")["metadata"]


def test_diff_shows_what_an_apply_would_change(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=config_map("c", colour="red"))
    assert kubectl("diff", "-f", "-", stdin=config_map("c", colour="red")).out == ""
    result = kubectl("diff", "-f", "-", stdin=config_map("c", colour="blue"), fails=1).out
    assert "-  colour: red" in result
    assert "+  colour: blue" in result
    server_side = kubectl(
        *("diff", "--server-side", "--force-conflicts", "-f", "-"),
        stdin=config_map("c", colour="green"),
        fails=1,
    ).out
    assert "+  colour: green" in server_side


def test_edit_opens_the_editor_and_stores_what_it_leaves(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl("create", "-f", "-", stdin=config_map("c", colour="red"))
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/colour: red/colour: blue/' \"$1\"\n")
    editor.chmod(0o755)
    assert kubectl("edit", "cm", "c", EDITOR=str(editor)).out == "configmap/c edited\n"
    assert kubectl.json("get", "cm", "c")["data"] == {"colour": "blue"}
    assert "Edit cancelled, no changes made." in kubectl("edit", "cm", "c", EDITOR="true").err


def test_the_three_patch_types_work(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=deployment("web"))
    strategic = '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"i"}]}}}}'
    kubectl("patch", "deployment", "web", "-p", strategic)
    containers = "jsonpath={.spec.template.spec.containers[*].name}"
    assert kubectl("get", "deployment", "web", "-o", containers).out == "side main"
    merge = '{"metadata":{"labels":{"app":null,"tier":"web"}}}'
    kubectl("patch", "deployment", "web", "--type=merge", "-p", merge)
    assert kubectl.json("get", "deployment", "web")["metadata"]["labels"] == {"tier": "web"}
    operations = '[{"op":"test","path":"/spec/replicas","value":1},'
    operations += '{"op":"replace","path":"/spec/replicas","value":4}]'
    kubectl("patch", "deployment", "web", "--type=json", "-p", operations)
    assert kubectl.json("get", "deployment", "web")["spec"]["replicas"] == 4
    result = kubectl("patch", "deployment", "web", "--type=json", "-p", operations, fails=1).err
    assert "The request is invalid" in result
    status = '{"status":{"replicas":4}}'
    kubectl("patch", "deployment", "web", "--subresource=status", "--type=merge", "-p", status)
    assert kubectl.json("get", "deployment", "web")["status"] == {"replicas": 4}


def test_labels_and_annotations_come_change_and_go(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=config_map("c"))
    kubectl("label", "cm", "c", "a=1", "b=2")
    assert "already has a value" in kubectl("label", "cm", "c", "a=3", fails=1).err
    kubectl("label", "cm", "c", "a=3", "b-", "--overwrite")
    assert kubectl.json("get", "cm", "c")["metadata"]["labels"] == {"a": "3"}
    kubectl("annotate", "cm", "c", "note=hello")
    kubectl("annotate", "cm", "c", "note-")
    assert "annotations" not in kubectl.json("get", "cm", "c")["metadata"]
    assert "a valid label must be" in kubectl("label", "cm", "c", "x=not valid", fails=1).err


def test_scale_changes_replicas_on_condition(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=deployment("web", 2))
    kubectl("scale", "deployment", "web", "--current-replicas=2", "--replicas=3")
    result = kubectl("scale", "deployment", "web", "--current-replicas=2", "--replicas=9", fails=1)
    assert "Expected replicas to be 2, was 3" in result.err
    assert kubectl.json("get", "deployment", "web")["spec"]["replicas"] == 3
    negative = kubectl("scale", "deployment", "web", "--replicas=-1", fails=1).err
    assert "The --replicas=COUNT flag is required" in negative


def test_replace_needs_the_object_and_force_makes_it_anew(kubectl: Kubectl) -> None:
    assert "NotFound" in kubectl("replace", "-f", "-", stdin=config_map("c"), fails=1).err
    kubectl("create", "-f", "-", stdin=config_map("c", a="1"))
    kubectl("replace", "-f", "-", stdin=config_map("c", b="2"))
    before = kubectl.json("get", "cm", "c")
    assert before["data"] == {"b": "2"}
    kubectl("replace", "--force", "-f", "-", stdin=config_map("c", b="3"))
    assert kubectl.json("get", "cm", "c")["metadata"]["uid"] != before["metadata"]["uid"]
    stale = config_map("c", b="4")
    stale["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"]
    result = kubectl("replace", "-f", "-", stdin=stale, fails=1).err
    assert "the object has been modified" in result


def test_wait_returns_when_the_condition_comes(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=[deployment("web"), pod("solo")])
    waiting = kubectl.start("wait", "--for=condition=Available", "deployment/web", "--timeout=60s")
    status = '{"status":{"conditions":[{"type":"Available","status":"True"}]}}'
    kubectl("patch", "deployment", "web", "--subresource=status", "--type=merge", "-p", status)
    assert waiting.communicate()[0] == "deployment.apps/web condition met\n"
    waiting = kubectl.start("wait", "--for=delete", "pod/solo", "--timeout=60s")
    kubectl("delete", "pod", "solo", "--wait=false")
    waiting.communicate()
    assert waiting.returncode == 0
    path = "--for=jsonpath={.spec.replicas}=1"
    assert "condition met" in kubectl("wait", path, "deployment/web").out
    result = kubectl("wait", "--for=condition=No", "deployment/web", "--timeout=100ms", fails=1).err
    assert "timed out waiting for the condition" in result


def test_rollout_restart_and_set_image_change_the_template(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=deployment("web"))
    kubectl("set", "image", "deployment/web", "main=registry.example/app:2")
    kubectl("rollout", "restart", "deployment/web")
    template = kubectl.json("get", "deployment", "web")["spec"]["template"]
    assert template["spec"]["containers"][0]["image"] == "registry.example/app:2"
    assert "kubectl.kubernetes.io/restartedAt" in template["metadata"]["annotations"]


def test_invalid_objects_are_refused_with_every_cause(kubectl: Kubectl) -> None:
    manifest = deployment("web")
    manifest["spec"]["replicas"] = -1
    manifest["spec"]["template"]["spec"]["containers"][0]["image"] = ""
    result = kubectl("create", "-f", "-", stdin=manifest, fails=1).err
    assert 'The Deployment "web" is invalid:' in result
    assert "* spec.replicas: Invalid value: -1: must be greater than or equal to 0" in result
    assert "* spec.template.spec.containers[0].image: Required value" in result
    wrong_type = deployment("web")
    wrong_type["spec"]["replicas"] = "many"
    result = kubectl("create", "-f", "-", stdin=wrong_type, fails=1).err
    assert "cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas" in result


def test_debug_adds_an_ephemeral_container(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=pod("solo"))
    kubectl("debug", "solo", "--image=registry.example/tools:1", "-c", "tools", "--attach=false")
    containers = kubectl.json("get", "pod", "solo")["spec"]["ephemeralContainers"]
    assert containers[0]["name"] == "tools"


def test_a_kustomization_is_applied_again_and_deleted_as_one(
    kubectl: Kubectl, tmp_path: Path
) -> None:
    base, overlay = tmp_path / "base", tmp_path / "prod"
    for folder in (base, overlay):
        folder.mkdir()
    manifest = deployment("web")
    (base / "web.yaml").write_text(json.dumps(manifest))
    made = {"resources": ["web.yaml"], "configMapGenerator": [{"name": "c", "literals": ["a=1"]}]}
    (base / "kustomization.yaml").write_text(json.dumps(made))
    count = {"name": "web", "count": 7}
    wanted = {"resources": ["../base"], "namePrefix": "prod-", "replicas": [count]}
    (overlay / "kustomization.yaml").write_text(json.dumps(wanted))
    first = kubectl("apply", "-k", str(overlay)).out.splitlines()
    assert [line.split()[1] for line in first] == ["created", "created"]
    again = kubectl("apply", "-k", str(overlay), "--server-side", "--force-conflicts").out
    assert again.count("serverside-applied") == 2
    assert kubectl("diff", "-k", str(overlay)).out == ""
    replicas = kubectl("get", "deployment", "prod-web", "-o", "jsonpath={.spec.replicas}").out
    assert replicas == "7"
    assert kubectl("delete", "-k", str(overlay)).out.count("deleted") == 2
