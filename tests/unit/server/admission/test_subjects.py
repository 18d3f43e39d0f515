"""What rules are compared with: names, scope and the labels of a Namespace."""

from __future__ import annotations

from typing import Any

from skerry.server.admission.operation import Operation
from skerry.server.admission.subjects import subject_of
from tests.kit.server.harness import serving


class _Seen:
    """Takes note of every operation."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []

    async def admit(self, operation: Operation) -> None:
        self.operations.append(operation)


async def test_a_namespace_is_matched_by_its_own_labels_and_others_by_theirs() -> None:
    seen = _Seen()
    async with serving(admission=(seen,)) as server:
        team: dict[str, Any] = {"metadata": {"name": "team", "labels": {"a": "b"}}}
        await server.create("/api/v1/namespaces", team)
        role = {"metadata": {"name": "r", "labels": {"c": "d"}}, "rules": []}
        await server.create("/apis/rbac.authorization.k8s.io/v1/clusterroles", role)
    namespace, role_operation = seen.operations[-2:]
    found = subject_of(namespace, None)
    assert found.namespace_labels == {"a": "b", "kubernetes.io/metadata.name": "team"}
    assert subject_of(role_operation, None).namespace_labels is None
    inside = subject_of(role_operation, {"metadata": {"labels": {"e": "f"}}})
    assert (inside.namespace_labels, inside.labels) == ({"e": "f"}, {"c": "d"})
