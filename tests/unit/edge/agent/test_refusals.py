"""Which pods a node refuses, and that it names the field."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.edge.agent.abilities import of_bubblewrap, of_namespaces, of_processes
from skerry.edge.agent.environment import ConfigurationMissing
from skerry.edge.agent.host_access import HostAccess
from skerry.edge.agent.refusals import NodePolicy, container_refusals, refusals
from skerry.edge.agent.runtime import Abilities, Confinement, Image
from skerry.edge.agent.security_context import (
    CAPABILITIES,
    DEFAULT_CAPABILITIES,
    capabilities,
    confinement,
)
from skerry.logic.machinery.pod_security.baseline import SYSCTLS_32

NOTHING = HostAccess()
ROOT = NodePolicy(of_namespaces(0, seccomp=True), NOTHING)
USER = NodePolicy(of_namespaces(1000, seccomp=True), NOTHING, 1000, 1000)
BUBBLEWRAP = NodePolicy(of_bubblewrap(users=True, seccomp=True), NOTHING, 1000, 1000)
PROCESSES = NodePolicy(of_processes(1000, seccomp=True), NOTHING, 1000, 1000)
PROCESSES_OF_ROOT = NodePolicy(of_processes(0, seccomp=True), NOTHING)
EVERY = (ROOT, USER, BUBBLEWRAP, PROCESSES, PROCESSES_OF_ROOT)
ISOLATED = (ROOT, USER, BUBBLEWRAP)


def pod(security: Any = None, container: Any = None, **spec: Any) -> dict[str, Any]:
    made = {"name": "c", "securityContext": container} if container is not None else {"name": "c"}
    found = {"containers": [made], "securityContext": security, **spec}
    return {"metadata": {"name": "p", "namespace": "n", "uid": "u"}, "spec": found}


def fields(found: list[str]) -> list[str]:
    return [text.split(": ")[0] for text in found]


@pytest.mark.parametrize("policy", EVERY)
def test_a_plain_pod_is_welcome_everywhere(policy: NodePolicy) -> None:
    assert refusals(pod(), policy) == []
    linux = {"os": {"name": "linux"}, "hostNetwork": False, "hostUsers": False}
    assert refusals(pod(**linux), policy) == []


@pytest.mark.parametrize("policy", ISOLATED)
def test_a_restricted_pod_is_welcome_where_pods_are_isolated(policy: NodePolicy) -> None:
    security = {
        "runAsNonRoot": True,
        "runAsUser": 1234,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    container = {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "runAsGroup": 1234,
    }
    assert refusals(pod(security, container), policy) == []


@pytest.mark.parametrize("field", ["hostNetwork", "hostPID", "hostIPC"])
def test_namespaces_of_the_machine_are_refused_by_name(field: str) -> None:
    assert fields(refusals(pod(**{field: True}), ROOT)) == [f"spec.{field}"]


def test_the_network_is_given_where_the_operator_says_so() -> None:
    policy = NodePolicy(ROOT.abilities, HostAccess(network=True))
    assert refusals(pod(hostNetwork=True), policy) == []


def test_processes_without_namespaces_have_what_they_ask_for() -> None:
    assert refusals(pod(hostPID=True, hostIPC=True), PROCESSES) == []
    assert fields(refusals(pod(hostNetwork=True), PROCESSES)) == ["spec.hostNetwork"]


def test_every_path_of_the_machine_is_refused_by_its_volume() -> None:
    volumes = [
        {"name": "a", "emptyDir": {}},
        {"name": "b", "hostPath": {"path": "/etc"}},
        {"name": "c", "hostPath": {"path": "/srv/data/x"}},
        {"name": "d", "hostPath": {"path": "/srv/data/../../etc"}},
    ]
    policy = NodePolicy(ROOT.abilities, HostAccess(("/srv/data",)))
    assert fields(refusals(pod(volumes=volumes), policy)) == [
        "spec.volumes[1].hostPath.path",
        "spec.volumes[3].hostPath.path",
    ]


WHERE = "spec.containers[0].securityContext"


@pytest.mark.parametrize("policy", EVERY)
@pytest.mark.parametrize(
    ("container", "field"),
    [
        ({"privileged": True}, "privileged"),
        ({"procMount": "Unmasked"}, "procMount"),
        ({"seccompProfile": {"type": "Localhost"}}, "seccompProfile.type"),
        ({"appArmorProfile": {"type": "RuntimeDefault"}}, "appArmorProfile.type"),
        ({"appArmorProfile": {"type": "Localhost"}}, "appArmorProfile.type"),
        ({"capabilities": {"add": ["SYS_ADMIN"]}}, "capabilities.add[0]"),
        ({"capabilities": {"add": ["ALL"]}}, "capabilities.add[0]"),
        ({"capabilities": {"add": ["CAP_SYS_MODULE"]}}, "capabilities.add[0]"),
        ({"capabilities": {"add": ["NO_SUCH"]}}, "capabilities.add[0]"),
        ({"capabilities": {"drop": ["ALL", "NO_SUCH"]}}, "capabilities.drop[1]"),
    ],
)
def test_what_nobody_gets_is_refused_everywhere(
    policy: NodePolicy, container: dict[str, Any], field: str
) -> None:
    assert fields(refusals(pod(container=container), policy)) == [f"{WHERE}.{field}"]
    path = "spec.ephemeralContainers[0]"
    made = {"name": "debug", "securityContext": container}
    assert fields(container_refusals(made, path, policy)) == [f"{path}.securityContext.{field}"]


@pytest.mark.parametrize("policy", EVERY)
def test_what_takes_a_restriction_away_is_left_alone(policy: NodePolicy) -> None:
    lenient = {
        "privileged": False,
        "procMount": "Default",
        "seccompProfile": {"type": "Unconfined"},
        "appArmorProfile": {"type": "Unconfined"},
        "seLinuxOptions": {"type": "container_t"},
        "windowsOptions": {"hostProcess": True},
        "readOnlyRootFilesystem": False,
        "allowPrivilegeEscalation": True,
    }
    assert refusals(pod(container=lenient), policy) == []


def test_plain_processes_refuse_what_only_a_namespace_gives() -> None:
    container = {"readOnlyRootFilesystem": True, "runAsUser": 1234, "runAsGroup": 1000}
    assert fields(refusals(pod(container=container), PROCESSES)) == [
        f"{WHERE}.runAsUser",
        f"{WHERE}.readOnlyRootFilesystem",
    ]
    assert refusals(pod({"runAsUser": 1000, "runAsGroup": 1000}), PROCESSES) == []
    assert fields(refusals(pod({"runAsUser": 1000}), PROCESSES_OF_ROOT)) == [
        "spec.securityContext.runAsUser"
    ]


def test_further_groups_take_an_edge_of_roots() -> None:
    security = {"supplementalGroups": [1, 2], "fsGroup": 3}
    assert refusals(pod(security), ROOT) == []
    assert fields(refusals(pod(security), USER)) == [
        "spec.securityContext.supplementalGroups[0]",
        "spec.securityContext.supplementalGroups[1]",
    ]
    assert refusals(pod({"fsGroup": 3}), USER) == []


def test_a_kernel_without_filters_refuses_those_who_ask_for_one() -> None:
    policy = NodePolicy(of_namespaces(0, seccomp=False), NOTHING)
    asking = {"seccompProfile": {"type": "RuntimeDefault"}}
    assert fields(refusals(pod(asking), policy)) == ["spec.securityContext.seccompProfile.type"]
    assert refusals(pod(), policy) == []


def test_kernel_settings_must_be_the_pods_own() -> None:
    def asked(*names: str, policy: NodePolicy = ROOT, **spec: Any) -> list[str]:
        items = [{"name": name, "value": "1"} for name in names]
        return refusals(pod({"sysctls": items}, **spec), policy)

    assert asked(*sorted(SYSCTLS_32)) == []
    assert asked("kernel.msgmax") == [
        'spec.securityContext.sysctls[0]: forbidden sysctl: "kernel.msgmax" not allowlisted'
    ]
    network = NodePolicy(ROOT.abilities, HostAccess(network=True))
    assert "host net" in asked("net.ipv4.tcp_rmem", policy=network, hostNetwork=True)[0]
    assert len(asked("kernel.shm_rmid_forced", "net.ipv4.tcp_rmem", policy=PROCESSES)) == 2


def test_app_armor_is_refused_by_annotation_too() -> None:
    key = "container.apparmor.security.beta.kubernetes.io/c"
    found = pod()
    found["metadata"]["annotations"] = {key: "localhost/x"}
    assert fields(refusals(found, ROOT)) == [f"metadata.annotations[{key}]"]
    found["metadata"]["annotations"] = {key: "unconfined"}
    assert refusals(found, ROOT) == []


def test_other_systems_and_shared_mounts_are_refused() -> None:
    assert fields(refusals(pod(os={"name": "windows"}), ROOT)) == ["spec.os.name"]
    mount = {"name": "v", "mountPath": "/v", "mountPropagation": "Bidirectional"}
    made = {"name": "c", "volumeMounts": [mount]}
    assert fields(container_refusals(made, "spec.containers[0]", ROOT)) == [
        "spec.containers[0].volumeMounts[0].mountPropagation"
    ]


class TestConfinement:
    IMAGE = Image("i", "i@sha256:0")

    def of(
        self,
        security: Any = None,
        container: Any = None,
        image: Image = IMAGE,
        abilities: Abilities = ROOT.abilities,
        edge_user: int = 0,
    ) -> Confinement:
        made = pod(security, container)
        return confinement(made, made["spec"]["containers"][0], image, abilities, edge_user)

    def test_a_container_has_the_usual_and_a_filter(self) -> None:
        found = self.of()
        assert {CAPABILITIES[number] for number in found.capabilities} == DEFAULT_CAPABILITIES
        assert (found.seccomp, found.no_new_privileges, found.read_only_root) == (
            True,
            False,
            False,
        )
        assert (found.user, found.group, found.groups) == (None, None, ())

    def test_its_own_fields_win_over_its_pods_and_null_is_silence(self) -> None:
        found = self.of({"runAsUser": 5, "runAsGroup": 6}, {"runAsUser": 7, "runAsGroup": None})
        assert (found.user, found.group) == (7, 6)
        profile = {"seccompProfile": {"type": "Unconfined"}}
        assert not self.of(profile).seccomp
        assert self.of(profile, {"seccompProfile": {"type": "RuntimeDefault"}}).seccomp

    def test_an_image_has_a_user_unless_somebody_names_one(self) -> None:
        image = Image("i", "i@sha256:0", user=33, group=44)
        assert (self.of(image=image).user, self.of(image=image).group) == (33, 44)
        assert self.of({"runAsUser": 5}, image=image).group == 0
        assert self.of({"runAsGroup": 5}, image=image).group == 5

    @pytest.mark.parametrize(
        ("asked", "expected"),
        [
            ({"drop": ["ALL"]}, set()),
            ({"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}, {"NET_BIND_SERVICE"}),
            ({"drop": ["all"], "add": ["CAP_CHOWN"]}, {"CHOWN"}),
            ({"drop": ["CHOWN", "MKNOD"]}, DEFAULT_CAPABILITIES - {"CHOWN", "MKNOD"}),
            ({"add": ["NET_ADMIN"]}, DEFAULT_CAPABILITIES | {"NET_ADMIN"}),
            ({"add": ["NET_ADMIN"], "drop": ["NET_ADMIN"]}, DEFAULT_CAPABILITIES),
            (None, DEFAULT_CAPABILITIES),
        ],
    )
    def test_capabilities_are_dropped_and_added_as_engines_do(
        self, asked: Any, expected: set[str]
    ) -> None:
        assert capabilities({"securityContext": {"capabilities": asked}}) == expected

    @pytest.mark.parametrize(
        ("security", "container", "text"),
        [
            ({"runAsNonRoot": True}, {}, "image will run as root"),
            ({"runAsNonRoot": True}, {"runAsUser": 0}, "runAsUser breaks non-root policy"),
            ({"runAsUser": 0}, {"runAsNonRoot": True}, "runAsUser breaks non-root policy"),
        ],
    )
    def test_not_being_root_is_kept(self, security: Any, container: Any, text: str) -> None:
        with pytest.raises(ConfigurationMissing, match=text) as refused:
            self.of(security, container)
        assert '(pod: "p_n(u)", container: c)' in str(refused.value)

    def test_who_is_not_root_may_say_so(self) -> None:
        assert self.of({"runAsNonRoot": True, "runAsUser": 5}).user == 5
        image = Image("i", "i@sha256:0", user=33)
        assert self.of({"runAsNonRoot": True}, image=image).user == 33
        self.of({"runAsNonRoot": True}, abilities=PROCESSES.abilities, edge_user=1000)
        with pytest.raises(ConfigurationMissing, match="will run as root"):
            self.of({"runAsNonRoot": True}, abilities=PROCESSES.abilities, edge_user=0)
        self.of({"runAsNonRoot": True}, {"runAsNonRoot": False})

    def test_a_user_by_name_cannot_be_vouched_for(self) -> None:
        image = Image("i", "i@sha256:0", user_name="www")
        with pytest.raises(ConfigurationMissing, match=r"non-numeric user \(www\)"):
            self.of({"runAsNonRoot": True}, image=image)

    def test_groups_are_those_named_and_that_of_volumes(self) -> None:
        assert self.of({"supplementalGroups": [4, 5], "fsGroup": 4}).groups == (4, 5)
        assert self.of({"fsGroup": 9}).groups == (9,)

    def test_a_runtime_gives_no_more_than_it_can(self) -> None:
        assert self.of(abilities=BUBBLEWRAP.abilities).capabilities == frozenset()

    @pytest.mark.parametrize("policy", EVERY)
    def test_looking_into_a_pod_is_possible_everywhere(self, policy: NodePolicy) -> None:
        debug = {"name": "d", "securityContext": {"capabilities": {"add": ["SYS_PTRACE"]}}}
        assert container_refusals(debug, "spec.ephemeralContainers[0]", policy) == []
