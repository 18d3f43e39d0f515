"""A hub in daily use, with its controllers, kubectl and the plugins."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.kit.e2e.hubs import Hub, Shell

MakeShell = Callable[..., Shell]


def until(shell: Shell, script: str, wanted: str) -> str:
    """Repeat *script* until it prints *wanted*; for what controllers bring about."""
    deadline = time.monotonic() + 60
    while wanted not in (printed := shell(script)):
        assert time.monotonic() < deadline, f"{script}: never {wanted!r}: {printed}"
    return printed


def test_namespaces_in_a_workspace_are_furnished_and_end(hub: Hub, shell_at: MakeShell) -> None:
    shell = shell_at(hub)
    shell("kubectl ws create furnished --enter; kubectl create namespace n")
    until(shell, "kubectl get -n n serviceaccounts,configmaps -o name", "kube-root-ca.crt")
    until(shell, "kubectl get -n n serviceaccounts -o name", "serviceaccount/default")
    shell("kubectl create -n n configmap c --from-literal a=b")
    assert shell("kubectl delete namespace n") == 'namespace "n" deleted\n'
    refused = shell("kubectl delete namespace default", code=1)
    assert "this namespace may not be deleted" in refused


def test_dependents_go_with_their_owner_also_of_bound_types(hub: Hub, shell_at: MakeShell) -> None:
    shell = shell_at(hub)
    shell("kubectl ws create owners --enter; kubectl apply -f config/imports")
    shell("kubectl apply -f config/samples/edgeplacement_dev.yaml")
    uid = shell("kubectl get edgeplacement dev -o jsonpath='{.metadata.uid}'")
    owner = f"""
  ownerReferences:
  - apiVersion: edge.kcp.io/v1alpha1
    kind: EdgePlacement
    name: dev
    uid: {uid}"""
    shell(f"""kubectl create -f - <<EOF
apiVersion: edge.kcp.io/v1alpha1
kind: SinglePlacementSlice
metadata:
  name: dev{owner}
destinations: []
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: follows
  namespace: default{owner}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: passing
  namespace: default
  labels: {{edge.kcp.io/projected: "yes"}}{owner}
EOF""")
    shell("kubectl delete edgeplacement dev")
    until(shell, "kubectl get sps,configmaps -o name; echo end", "configmap/passing\nend")
    left = shell("kubectl get sps,configmaps -o name")
    assert left.split() == ["configmap/kube-root-ca.crt", "configmap/passing"]


def test_an_owner_in_another_workspace_is_no_owner(hub: Hub, shell_at: MakeShell) -> None:
    shell = shell_at(hub)
    shell("kubectl ws create here --enter; kubectl create configmap owner")
    uid = shell("kubectl get configmap owner -o jsonpath='{.metadata.uid}'")
    shell("kubectl ws ..; kubectl ws create there --enter")
    dependent = f"""kubectl create -f - <<EOF
apiVersion: v1
kind: ConfigMap
metadata:
  name: dependent
  namespace: default
  ownerReferences: [{{apiVersion: v1, kind: ConfigMap, name: owner, uid: {uid}}}]
EOF"""
    shell(dependent)
    # There is no such owner here, so it is collected, as Kubernetes does with owners that are gone.
    until(shell, "kubectl get configmap -o name", "kube-root-ca.crt")
    until(shell, "kubectl get configmap dependent -o name 2>&1 || true", "not found")
    assert "configmap/owner" in shell("kubectl ws root:here; kubectl get configmaps -o name")


def test_quota_counts_in_its_own_workspace(hub: Hub, shell_at: MakeShell) -> None:
    shell = shell_at(hub)
    shell("kubectl ws create limited --enter; kubectl create quota q --hard count/configmaps=2")
    until(shell, "kubectl get quota q -o jsonpath='{.status.used}'", '"count/configmaps":"1"')
    shell("kubectl create configmap one")
    assert "exceeded quota" in shell("kubectl create configmap two", code=1)
    shell("kubectl delete configmap one")
    until(shell, "kubectl get quota q -o jsonpath='{.status.used}'", '"count/configmaps":"1"')
    shell("kubectl create configmap two; kubectl ws ..; kubectl ws create unlimited --enter")
    shell("for n in 1 2 3; do kubectl create configmap c$n; done")


def test_service_accounts_have_tokens_that_lead_home(hub: Hub, shell_at: MakeShell) -> None:
    shell = shell_at(hub)
    shell("kubectl ws create accounts --enter; kubectl create serviceaccount sa")
    shell("kubectl create clusterrolebinding sa --clusterrole view --serviceaccount default:sa")
    shell("kubectl create configmap mine")
    secret = shell("kubectl get serviceaccount sa -o jsonpath='{.secrets[0].name}'")
    token = shell(f"kubectl get secret {secret} -o jsonpath='{{.data.token}}' | base64 -d")
    bare = f"kubectl --server {hub.url} --token {token} get configmaps -o name"
    assert "configmap/mine" in shell(f"unset KUBECONFIG; {bare} --insecure-skip-tls-verify")
    shell("kubectl delete serviceaccount sa")


def test_the_plugin_says_what_the_original_says(hub: Hub, shell_at: MakeShell) -> None:
    shell = shell_at(hub)
    said = {
        "kubectl ws create said --enter": (
            'Workspace "said" (type root:organization) is ready to use.\n'
            'Current workspace is "root:said" (type root:organization).\n'
        ),
        "kubectl ws .": 'Current workspace is "root:said".\n',
        "kubectl ws current --short": "root:said\n",
        "kubectl ws create kid": 'Workspace "kid" (type root:universal) is ready to use.\n',
        "kubectl ws kid": 'Current workspace is "root:said:kid" (type root:universal).\n',
        "kubectl ws -": 'Current workspace is "root:said".\n',
        "kubectl ws tree": ".\n└── said\n    └── kid\n\n",
        "kubectl workspaces tree -f": ".\n└── root:said\n    └── root:said:kid\n\n",
        "kubectl ws create-context": 'Created context "root:said" and switched to it.\n',
        "kubectl kcp bind apiexport root:compute:kubernetes": (
            "apibinding kubernetes created. Waiting to successfully bind ...\n"
            "kubernetes created and bound.\n"
        ),
        "kubectl ws ..": 'Current workspace is "root".\n',
        "kubectl ws use root:said:kid": 'Current workspace is "root:said:kid".\n',
        "kubectl workspace '~'": 'Current workspace is "kvdk2spgmbix".\n',
    }
    for command, wanted in said.items():
        assert shell(command) == wanted, command
    refused = {
        "kubectl ws ..": 'Error: current workspace "kvdk2spgmbix" has no parent\n',
        "kubectl ws root:nowhere": 'Error: workspace "root:nowhere" not found\n',
        "kubectl ws nope": 'Error: workspaces.tenancy.kcp.io "nope" not found\n',
        "kubectl ws Nope": "Error: invalid workspace name format: Nope\n",
        "kubectl ws create": "Error: accepts 1 arg(s), received 0\n",
        "kubectl ws --kubeconfig /nowhere .": "Error: stat /nowhere: no such file or directory\n",
    }
    for command, wanted in refused.items():
        assert shell(command, code=1) == wanted, command
    again = 'Error: workspaces.tenancy.kcp.io "said" already exists\n'
    assert shell("kubectl ws root >/dev/null; kubectl ws create said", code=1) == again
    assert shell("kubectl ws create said --ignore-existing") == (
        'Workspace "said" (type root:organization) already exists.\n'
        'Workspace "said" (type root:organization) is ready to use.\n'
    )


_TARGET = """kubectl apply -f - <<EOF
apiVersion: workload.kcp.io/v1alpha1
kind: SyncTarget
metadata: {name: t}
EOF"""


def test_compute_is_bound_once_somebody_is_ready_to_run_it(hub: Hub, shell_at: MakeShell) -> None:
    shell = shell_at(hub)
    shell("kubectl ws create edges --enter; kubectl ws create here --type universal")
    shell(_TARGET)
    now = "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
    beat = f"""'{{"status":{{"lastSyncerHeartbeatTime":"'{now}'"}}}}'"""
    shell("kubectl ws here")
    early = "kubectl kcp bind compute root:edges --timeout 1s --name early 2>&1 && false || true"
    wanted = "placement is not scheduled: No SyncTarget is ready or non evicting"
    until(shell, early, f'error: placement "early" not ready: {wanted}\n')
    shell(
        "kubectl ws ..; kubectl patch synctarget t --type merge --subresource status "
        f"-p {beat}; kubectl ws here"
    )
    name = shell("kubectl kcp bind compute root:edges 2>/dev/null").split()[1]
    again = shell("kubectl kcp bind compute root:edges")
    assert again == f'Placement "{name}" is ready.\nplacement {name} already exists.\n'
    status = f"kubectl get placement {name} -o jsonpath='{{.status}}'"
    assert '"locationName":"default"' in until(shell, status, '"phase":"Bound"')
    annotations = "kubectl get namespace default -o jsonpath='{.metadata.annotations}'"
    until(shell, annotations, '"scheduling.kcp.io/placement":""')
    shell("kubectl delete placements --all")


def test_people_can_ask_what_there_is(hub: Hub, shell_at: MakeShell) -> None:
    shell = shell_at(hub)
    shell("kubectl ws create asking --enter")
    assert "kcp-admin" in shell("kubectl auth whoami")
    assert "*.*" in shell("kubectl auth can-i --list")
    assert "KIND:       SyncTarget" in shell("kubectl explain synctargets.spec")
    assert "KIND:       Workspace" in shell("kubectl explain workspaces.spec.type")
    version = shell("kubectl version 2>&1")
    assert "v1.32.0+kcp-v0.11.0" in version
    assert "skew" not in version
    assert shell("kubectl get --raw /readyz") == "ok"
    exports = shell("kubectl ws root:compute >/dev/null; kubectl get apiexports -o name")
    assert "apiexport.apis.kcp.io/kubernetes" in exports


def test_workspaces_are_listed_with_their_columns(fresh_hub: Hub, shell_at: MakeShell) -> None:
    shell = shell_at(fresh_hub)
    shell("kubectl ws create one\nkubectl ws create two --type universal")
    rows = [line.split() for line in shell("kubectl get Workspaces").splitlines()]
    assert rows[0] == ["NAME", "TYPE", "REGION", "PHASE", "URL", "AGE"]
    assert [row[:3] for row in rows[1:]] == [
        ["compute", "universal", "Ready"],
        ["one", "organization", "Ready"],
        ["two", "universal", "Ready"],
    ]
    assert all(row[3].startswith(f"{fresh_hub.url}/clusters/") for row in rows[1:])


def test_a_closed_door_says_so(hub: Hub, shell_at: MakeShell) -> None:
    shell = shell_at(hub)
    refused = shell(f"kubectl --server {hub.url}/clusters/root:nowhere get namespaces", code=1)
    assert refused.splitlines()[-1] == (
        'Error from server (Forbidden): forbidden: User "kcp-admin" cannot get path "/api": '
        "access denied"
    )


def test_kubectl_shows_that_a_placement_can_match_nothing(hub: Hub, shell_at: MakeShell) -> None:
    shell = shell_at(hub)
    shell("kubectl ws create hopeless --enter; kubectl apply -f config/imports")
    placement = """
apiVersion: edge.kcp.io/v1alpha1
kind: EdgePlacement
metadata:
  name: hopeless
spec:
  locationSelectors:
  - matchLabels: {env: prod}
    matchExpressions:
    - {key: env, operator: NotIn, values: [prod]}
"""
    assert shell(f"kubectl create -f - <<EOF{placement}EOF") == (
        "Warning: spec.locationSelectors[0]: no value of label 'env' can satisfy it\n"
        "edgeplacement.edge.kcp.io/hopeless created\n"
    )
    hopeful = placement.replace("NotIn", "In")
    assert "Warning" not in shell(f"kubectl replace -f - <<EOF{hopeful}EOF")
    patch = '{"spec": {"locationWorkspaceSelector": {"matchExpressions": [{"key": "a", "operator": '
    patch += '"Exists"}, {"key": "a", "operator": "DoesNotExist"}]}}}'
    changed = shell(f"kubectl patch edgeplacement hopeless --type merge -p '{patch}'")
    assert changed.startswith("Warning: spec.locationWorkspaceSelector: no value of label 'a' can")
