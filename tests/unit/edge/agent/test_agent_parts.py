"""The agent's pure parts: paths, catalogue, environment, volumes, status."""

from __future__ import annotations

import base64
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.edge.agent.catalogue import (
    Catalogue,
    CatalogueError,
    parse_catalogue,
    repository,
)
from skerry.edge.agent.environment import (
    ConfigurationMissing,
    arguments,
    environment,
    expanded,
    service_environment,
)
from skerry.edge.agent.paths import filled, real_path, with_real_paths, with_real_ports
from skerry.edge.agent.runtime import Exit, ImageNotFound, Mount, Volume
from skerry.edge.agent.status import (
    ContainerState,
    Ended,
    PodState,
    Running,
    Waiting,
    pod_phase,
    pod_status,
)
from tests.kit.agent.fixtures import FACTS, NOW, POD

MOUNTS = [
    Mount("/data", Volume(Path("/real/data"))),
    Mount("/data/inner", Volume(Path("/real/inner"))),
]


class TestPaths:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("cat /data/x", "cat /real/data/x"),
            ("cat /data", "cat /real/data"),
            ("cat /data/inner/y", "cat /real/inner/y"),
            ("cat /database /mydata/data", "cat /database /mydata/data"),
            ('echo a>"/data/x";ls', 'echo a>"/real/data/x";ls'),
            ("--dir=/data", "--dir=/real/data"),
            ("/data:/data/inner", "/real/data:/real/inner"),
            ("/other/data/x", "/other/data/x"),
        ],
    )
    def test_paths_below_mounts_are_replaced_and_no_others(self, text: str, expected: str) -> None:
        assert with_real_paths(text, MOUNTS) == expected

    def test_the_longest_mount_wins(self) -> None:
        assert real_path("/data/inner/z", MOUNTS) == "/real/inner/z"
        assert real_path("/data/", MOUNTS) == "/real/data"
        assert real_path("/elsewhere", MOUNTS) == "/elsewhere"

    @given(st.text(alphabet="abc /.-\n"))
    def test_text_without_mounts_is_left_alone(self, text: str) -> None:
        assert with_real_paths(text, []) == text

    @pytest.mark.parametrize(
        ("argument", "expected"),
        [
            ("80", "4000"),
            (":80", ":4000"),
            ("--port=80", "--port=4000"),
            ("0.0.0.0:80", "0.0.0.0:4000"),
            ("8080", "8080"),
            ("sleep 80", "sleep 80"),
            ("x80", "x80"),
        ],
    )
    def test_an_argument_that_is_a_port_is_replaced(self, argument: str, expected: str) -> None:
        assert with_real_ports(argument, {80: 4000}) == expected

    def test_places_of_a_catalogue_entry_are_filled(self) -> None:
        ports = {80: 4000, 443: 4001}
        assert filled("{port}", ports, 80, MOUNTS) == "4000"
        assert filled("--tls={port:443}", ports, 80, MOUNTS) == "--tls=4001"
        assert filled("{path:/data/www}", ports, 80, MOUNTS) == "/real/data/www"
        assert filled("{other}", ports, 80, MOUNTS) == "{other}"


class TestCatalogue:
    @pytest.mark.parametrize(
        ("reference", "expected"),
        [
            ("httpd", "docker.io/library/httpd"),
            ("library/httpd:2.4", "docker.io/library/httpd"),
            ("docker.io/library/httpd@sha256:abc", "docker.io/library/httpd"),
            ("acme/web:1", "docker.io/acme/web"),
            ("localhost:5000/web:1", "localhost:5000/web"),
            ("ghcr.io/acme/web", "ghcr.io/acme/web"),
        ],
    )
    def test_references_are_reduced_to_repositories(self, reference: str, expected: str) -> None:
        assert repository(reference) == expected

    def test_built_in_images_are_known_under_every_spelling(self) -> None:
        catalogue = Catalogue()
        one, two = catalogue.find("httpd"), catalogue.find("docker.io/library/httpd:2.4")
        assert one.identity == two.identity
        assert one.ports == (80,)

    def test_a_users_file_adds_replaces_and_is_read_again(self, tmp_path: Path) -> None:
        path = tmp_path / "images.yaml"
        catalogue = Catalogue(path)
        with pytest.raises(ImageNotFound, match=r"add an entry for docker.io/acme/web in .*images"):
            catalogue.find("acme/web:1")
        path.write_text("images:\n- names: [acme/web, httpd]\n  entrypoint: [/opt/web]\n")
        assert catalogue.find("acme/web:1").entrypoint == ("/opt/web",)
        assert catalogue.find("httpd").entrypoint == ("/opt/web",)
        path.unlink()
        assert catalogue.find("httpd").entrypoint == ("httpd-foreground",)

    def test_a_file_that_breaks_leaves_what_was_known_and_says_so(self, tmp_path: Path) -> None:
        path = tmp_path / "images.yaml"
        path.write_text("images:\n- names: [acme/web]\n  entrypoint: [/opt/web]\n")
        catalogue = Catalogue(path)
        catalogue.find("acme/web")
        path.write_text("images: nonsense")
        assert catalogue.find("acme/web").entrypoint == ("/opt/web",)
        with pytest.raises(ImageNotFound, match="want a list under 'images'"):
            catalogue.find("acme/other")

    @pytest.mark.parametrize(
        ("text", "fault"),
        [
            ("images: 3", "want a list under 'images'"),
            ("images: [{entrypoint: [x]}]", r"images\[0\]: want a mapping with 'names'"),
            ("images: [{names: [x], colour: red}]", r"images\[0\]: unknown colour"),
            ("images: [{names: [x], entrypoint: y}]", "want a list of texts"),
            (": [", "f.yaml"),
        ],
    )
    def test_a_faulty_file_names_its_fault(self, text: str, fault: str) -> None:
        with pytest.raises(CatalogueError, match=fault):
            parse_catalogue(text, "f.yaml")


class TestEnvironment:
    objects: dict[tuple[str, str], Object] = {  # noqa: RUF012 - read only
        ("configmap", "cm"): {"data": {"A": "1", "not a name": "2"}},
        ("secret", "s"): {"data": {"P": base64.b64encode(b"hush").decode()}},
    }

    def lookup(self, kind: str, name: str) -> Object | None:
        return self.objects.get((kind, name))

    def of(self, **container: Any) -> dict[str, str]:
        return environment(container, FACTS, self.lookup)

    def test_references_to_variables_are_expanded_in_order(self) -> None:
        found = self.of(
            env=[
                {"name": "A", "value": "1"},
                {"name": "B", "value": "$(A)$(C)$$(A)"},
                {"name": "C", "value": "3"},
            ]
        )
        assert found["B"] == "1$(C)$(A)"

    def test_all_of_a_source_comes_with_its_prefix_where_names_allow(self) -> None:
        source = {"prefix": "X_", "configMapRef": {"name": "cm"}}
        assert self.of(envFrom=[source]) == {"X_A": "1"}

    def test_what_is_missing_is_named_unless_it_is_optional(self) -> None:
        with pytest.raises(ConfigurationMissing, match='configmap "no" not found'):
            self.of(envFrom=[{"configMapRef": {"name": "no"}}])
        assert self.of(envFrom=[{"secretRef": {"name": "no", "optional": True}}]) == {}
        reference = {"secretKeyRef": {"name": "s", "key": "Q"}}
        with pytest.raises(ConfigurationMissing, match="couldn't find key Q in Secret ns/s"):
            self.of(env=[{"name": "X", "valueFrom": reference}])

    def test_fields_resources_and_secrets_become_text(self) -> None:
        def value(**source: Any) -> str:
            variable = {"name": "X", "valueFrom": source}
            resources = {"requests": {"cpu": "250m"}}
            return self.of(env=[variable], resources=resources)["X"]

        assert value(fieldRef={"fieldPath": "status.podIP"}) == "10.244.0.2"
        assert value(fieldRef={"fieldPath": "metadata.labels['b']"}) == "2"
        assert value(fieldRef={"fieldPath": "spec.nodeName"}) == "node-1"
        assert value(secretKeyRef={"name": "s", "key": "P"}) == "hush"
        assert value(resourceFieldRef={"resource": "requests.cpu", "divisor": "1m"}) == "250"
        assert value(resourceFieldRef={"resource": "limits.cpu"}) == "4"

    def test_services_are_reported_as_kubelet_reports_them(self) -> None:
        port = {"name": "http", "port": 80}
        service = {"metadata": {"name": "my-web"}, "spec": {"ports": [port]}}
        found = service_environment([service], lambda s, p: ("127.0.0.1", 4000))
        assert found == {
            "MY_WEB_SERVICE_HOST": "127.0.0.1",
            "MY_WEB_SERVICE_PORT": "4000",
            "MY_WEB_SERVICE_PORT_HTTP": "4000",
        }
        assert service_environment([service], lambda s, p: None) == {}

    def test_a_command_silences_the_images_arguments(self) -> None:
        assert arguments({}, ["run"], ["default"], {}) == ("run", "default")
        assert arguments({"args": ["x"]}, ["run"], ["default"], {}) == ("run", "x")
        assert arguments({"command": ["sh"]}, ["run"], ["default"], {}) == ("sh",)
        assert arguments({"command": ["sh", "$(A)"]}, [], [], {"A": "1"}) == ("sh", "1")

    @given(st.text())
    def test_text_without_dollars_is_never_changed(self, text: str) -> None:
        plain = text.replace("$", "")
        assert expanded(plain, {"A": "1"}) == plain


class TestStatus:
    def state(self, *containers: ContainerState, **more: Any) -> PodState:
        return PodState((), tuple(containers), "172.18.0.2", **more)

    def ended(self, code: int) -> ContainerState:
        return ContainerState("c", "i", Ended(Exit(code, NOW, NOW)))

    def pod(self, policy: str) -> Object:
        return {**POD, "spec": {**POD["spec"], "restartPolicy": policy}}

    @pytest.mark.parametrize(
        ("policy", "codes", "phase"),
        [
            ("Never", [0, 0], "Succeeded"),
            ("Never", [0, 1], "Failed"),
            ("OnFailure", [0, 0], "Succeeded"),
            ("OnFailure", [0, 1], "Running"),
            ("Always", [0, 0], "Running"),
        ],
    )
    def test_the_phase_of_ended_containers_depends_on_the_policy(
        self, policy: str, codes: list[int], phase: str
    ) -> None:
        state = self.state(*(self.ended(code) for code in codes))
        assert pod_phase(self.pod(policy), state) == phase

    def test_a_pod_that_is_over_has_a_final_phase_whatever_its_policy(self) -> None:
        assert pod_phase(self.pod("Always"), self.state(self.ended(0), over=True)) == "Succeeded"
        waiting = ContainerState("c", "i", Waiting("ContainerCreating"))
        assert pod_phase(self.pod("Always"), self.state(waiting, over=True)) == "Failed"

    def test_waiting_for_the_first_start_is_pending_and_for_another_is_running(self) -> None:
        fresh = ContainerState("c", "i", Waiting("ContainerCreating"))
        assert pod_phase(POD, self.state(fresh)) == "Pending"
        again = fresh.but(state=Waiting("CrashLoopBackOff"), last=Ended(Exit(1, NOW, NOW)))
        assert pod_phase(POD, self.state(again)) == "Running"

    def test_conditions_keep_their_times_and_lose_their_reasons(self) -> None:
        unready = ContainerState("c", "i", Running(NOW), started=True)
        first = pod_status(POD, self.state(unready, sandboxed=True), NOW)
        conditions = {c["type"]: c for c in first["conditions"]}
        assert conditions["Ready"]["reason"] == "ContainersNotReady"
        assert conditions["Ready"]["message"] == "containers with unready status: [c]"
        later = NOW + timedelta(minutes=1)
        reported = {**POD, "status": first}
        same = pod_status(reported, self.state(unready, sandboxed=True), later)
        assert same == first
        ready = pod_status(reported, self.state(unready.but(ready=True), sandboxed=True), later)
        conditions = {c["type"]: c for c in ready["conditions"]}
        assert conditions["Ready"]["status"] == "True"
        assert conditions["Ready"]["reason"] is None, "a patch must take the reason away"
        assert conditions["Initialized"]["lastTransitionTime"] == "2026-01-01T12:00:00Z"

    def test_a_readiness_gate_holds_readiness_back(self) -> None:
        pod = {**POD, "spec": {**POD["spec"], "readinessGates": [{"conditionType": "mine"}]}}
        good = ContainerState("c", "i", Running(NOW), ready=True, started=True)
        conditions = pod_status(pod, self.state(good), NOW)["conditions"]
        found = {c["type"]: c["status"] for c in conditions}
        assert (found["Ready"], found["ContainersReady"]) == ("False", "True")

    def test_container_states_are_reported_as_kubelet_reports_them(self) -> None:
        found = pod_status(self.pod("Never"), self.state(self.ended(3)), NOW)
        (status,) = found["containerStatuses"]
        assert status["state"]["terminated"]["exitCode"] == 3
        assert status["state"]["terminated"]["reason"] == "Error"
        assert status["ready"] is False
        assert found["phase"] == "Failed"
