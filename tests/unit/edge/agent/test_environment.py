"""The environment of a container, as kubelet makes it."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.edge.agent.environment import (
    ConfigurationMissing,
    arguments,
    environment,
    expanded,
    service_environment,
)
from tests.kit.agent.fixtures import FACTS


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
