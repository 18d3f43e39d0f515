"""Users, rights and tokens through kubectl."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.e2e.manifests import pod
from tests.kit.e2e.processes import Kubectl, ServerProcess
from tests.kit.server.certificates import encoded_csr


@pytest.fixture
def robot(kubectl: Kubectl, server: ServerProcess, tmp_path: Path) -> Kubectl:
    """kubectl with the token of a service account that may nothing yet."""
    kubectl("create", "serviceaccount", "robot")
    token = kubectl("create", "token", "robot", "--duration=1h").out.strip()
    config = tmp_path / "robot.kubeconfig"
    acting = Kubectl(config, tmp_path)
    authority = server.data_dir / "pki" / "ca.crt"
    acting(
        "config",
        "set-cluster",
        "c",
        f"--server={server.url}",
        f"--certificate-authority={authority}",
    )
    acting("config", "set-credentials", "robot", f"--token={token}")
    acting("config", "set-context", "x", "--cluster=c", "--user=robot")
    acting("config", "use-context", "x")
    return Kubectl(config, tmp_path, kubectl.namespace)


def test_a_token_is_somebody_and_may_only_what_was_given(kubectl: Kubectl, robot: Kubectl) -> None:
    me = f"system:serviceaccount:{kubectl.namespace}:robot"
    assert me in robot("auth", "whoami").out
    result = robot("get", "pods", fails=1).err
    assert (
        f'pods is forbidden: User "{me}" cannot list resource "pods" in API group "" in the'
        in result
    )
    kubectl("create", "role", "reader", "--verb=get,list", "--resource=pods")
    kubectl(
        *("create", "rolebinding", "readers", "--role=reader"),
        f"--serviceaccount={kubectl.namespace}:robot",
    )
    assert "No resources found" in robot("get", "pods").err
    kubectl("create", "-f", "-", stdin=pod("solo"))
    assert "forbidden" in robot("delete", "pods", "--all", fails=1).err


def test_can_i_answers_for_me_and_for_others(kubectl: Kubectl, robot: Kubectl) -> None:
    assert kubectl("auth", "can-i", "delete", "nodes").out == "yes\n"
    assert robot("auth", "can-i", "get", "pods", fails=1).out == "no\n"
    assert kubectl("auth", "can-i", "--list").out.splitlines()[1].split() == [
        "*.*",
        "[]",
        "[]",
        "[*]",
    ]
    kubectl("create", "role", "reader", "--verb=get", "--resource=pods,deployments.apps")
    kubectl(
        *("create", "rolebinding", "readers", "--role=reader"),
        f"--serviceaccount={kubectl.namespace}:robot",
    )
    assert robot("auth", "can-i", "get", "pods").out == "yes\n"
    rows = {row[0]: row[-1] for row in robot.rows("auth", "can-i", "--list")}
    assert rows["pods"] == "[get]"
    assert rows["deployments.apps"] == "[get]"
    me = f"--as=system:serviceaccount:{kubectl.namespace}:robot"
    assert kubectl("auth", "can-i", "get", "pods", me).out == "yes\n"
    assert kubectl("auth", "can-i", "list", "pods", me, fails=1).out == "no\n"


def test_nobody_grants_what_they_do_not_hold(kubectl: Kubectl, robot: Kubectl) -> None:
    kubectl("create", "role", "maker", "--verb=create", "--resource=roles,rolebindings")
    kubectl(
        *("create", "rolebinding", "makers", "--role=maker"),
        f"--serviceaccount={kubectl.namespace}:robot",
    )
    result = robot("create", "role", "greedy", "--verb=get", "--resource=secrets", fails=1).err
    assert "is attempting to grant RBAC permissions not currently held" in result
    result = robot("create", "rolebinding", "up", "--clusterrole=admin", "--user=me", fails=1).err
    assert "is attempting to grant RBAC permissions not currently held" in result
    assert "created" in robot("create", "role", "modest", "--verb=create", "--resource=roles").out


def test_auth_reconcile_brings_roles_in_line(kubectl: Kubectl) -> None:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "r", "namespace": kubectl.namespace},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    }
    assert "reconciled" in kubectl("auth", "reconcile", "-f", "-", stdin=role).out
    role["rules"] = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    kubectl("auth", "reconcile", "-f", "-", stdin=role)
    verbs = [rule["verbs"] for rule in kubectl.json("get", "role", "r")["rules"]]
    assert sorted(verb for listed in verbs for verb in listed) == ["get", "list"]


def test_tokens_may_be_bound_to_a_pod(kubectl: Kubectl, robot: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=pod("other"))
    foreign = ("--bound-object-kind=Pod", "--bound-object-name=other")
    refused = kubectl("create", "token", "robot", *foreign, fails=1).err
    assert "to pod running with different serviceaccount name" in refused
    own = pod("solo")
    own["spec"]["serviceAccountName"] = "robot"
    kubectl("create", "-f", "-", stdin=own)
    token = kubectl(
        *("create", "token", "robot", "--bound-object-kind=Pod", "--bound-object-name=solo")
    ).out.strip()
    assert "pod-name        [solo]" in robot("auth", "whoami", "--token", token).out
    kubectl("delete", "pod", "solo")
    gone = ("--bound-object-kind=Pod", "--bound-object-name=solo")
    assert 'pods "solo" not found' in kubectl("create", "token", "robot", *gone, fails=1).err


def test_garbage_tokens_and_strangers_are_turned_away(robot: Kubectl) -> None:
    result = robot("get", "pods", "--token", "garbage", fails=1).err
    assert "You must be logged in to the server" in result or "Unauthorized" in result


def test_a_certificate_request_is_made_in_the_name_of_whoever_asks(kubectl: Kubectl) -> None:
    request = {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": kubectl.namespace},
        "spec": {
            "request": encoded_csr(),
            "signerName": "example.org/signer",
            "usages": ["client auth"],
            "username": "somebody-else",
        },
    }
    kubectl("create", "-f", "-", stdin=request)
    found = kubectl.json("get", "csr", kubectl.namespace)
    assert found["spec"]["username"] == "kubernetes-admin"
    assert "approved" in kubectl("certificate", "approve", kubectl.namespace).out
    assert kubectl.rows("get", "csr", kubectl.namespace)[1][-1] == "Approved"
    result = kubectl("certificate", "deny", kubectl.namespace, fails=1).err
    assert "is already Approved" in result
