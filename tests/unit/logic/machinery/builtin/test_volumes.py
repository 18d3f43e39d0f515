"""Volumes, mounts, devices and references from a container to its own pod."""

from __future__ import annotations

import pytest

from skerry.api.objects import Object
from skerry.logic.machinery.builtin import ephemeral_container_errors
from tests.kit.machinery.objects import (
    container,
    created,
    errors_of,
    merged,
    pod,
    resource,
)

PODS = resource("pods")
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def volume_errors(**source: object) -> list[str]:
    spec = {"volumes": [{"name": "v", **source}], "serviceAccountName": "sa"}
    return errors_of(PODS, pod(spec))


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ({"hostPath": {}}, "hostPath.path: Required value"),
        ({"hostPath": {"path": "/x", "type": "Odd"}}, 'hostPath.type: Unsupported value: "Odd"'),
        ({"emptyDir": {"sizeLimit": "-1"}}, "emptyDir.sizeLimit: Forbidden: SizeLimit field must"),
        ({"secret": {}}, "secret.secretName: Required value"),
        ({"configMap": {"name": "c", "defaultMode": 512}}, "configMap.defaultMode: Invalid value"),
        (
            {"configMap": {"name": "c", "items": [{"key": "k", "path": "/abs"}]}},
            'configMap.items[0].path: Invalid value: "/abs": must be a relative path',
        ),
        (
            {"secret": {"secretName": "s", "items": [{"key": "k", "path": "..data"}]}},
            "secret.items[0].path: Invalid value: \"..data\": must not start with '..'",
        ),
        ({"persistentVolumeClaim": {}}, "persistentVolumeClaim.claimName: Required value"),
        (
            {"nfs": {"server": "s", "path": "x"}},
            'nfs.path: Invalid value: "x": must be an absolute',
        ),
        ({"csi": {"driver": "A" * 64}}, "csi.driver: Too long: may not be more than 63 bytes"),
        (
            {"csi": {"driver": "d", "nodePublishSecretRef": {}}},
            "csi.nodePublishSecretRef.name: Required value",
        ),
        (
            {"downwardAPI": {"items": [{"path": "p"}]}},
            "downwardAPI: Required value: one of fieldRef",
        ),
        (
            {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "status.podIP"}}]}},
            'downwardAPI.fieldRef.fieldPath: Unsupported value: "status.podIP"',
        ),
        (
            {"downwardAPI": {"items": [{"path": "p", "resourceFieldRef": {"resource": "x"}}]}},
            "downwardAPI.resourceFieldRef.containerName: Required value",
        ),
        (
            {
                "projected": {
                    "sources": [
                        {"secret": {"name": "s", "items": [{"key": "k", "path": "p"}]}},
                        {"configMap": {"name": "c", "items": [{"key": "k", "path": "p"}]}},
                    ]
                }
            },
            'projected: Invalid value: "c": conflicting duplicate paths',
        ),
        (
            {"projected": {"sources": [{"serviceAccountToken": {"expirationSeconds": 1}}]}},
            "projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 1: may not",
        ),
        (
            {"projected": {"sources": [{"secret": {"name": "s"}, "configMap": {"name": "c"}}]}},
            "projected.sources[0]: Forbidden: may not specify more than 1 volume type per source",
        ),
        (
            {"projected": {"sources": [{"clusterTrustBundle": {"path": "p"}}]}},
            "projected.sources[0].clusterTrustBundle: Required value: either name or signerName",
        ),
        ({"ephemeral": {}}, "ephemeral.volumeClaimTemplate: Required value"),
        (
            {"ephemeral": {"volumeClaimTemplate": {"metadata": {"name": "n"}, "spec": CLAIM}}},
            "ephemeral.volumeClaimTemplate.metadata.name: Forbidden: cannot be set",
        ),
    ],
)
def test_bad_volumes_are_refused(source: Object, error: str) -> None:
    errors = volume_errors(**source)
    assert any(found.startswith(f"spec.volumes[0].{error}") for found in errors), errors


@pytest.mark.parametrize(
    "source",
    [
        {"ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}},
        {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
        {
            "downwardAPI": {
                "items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.labels['a']"}}]
            }
        },
        {"csi": {"driver": "example.com"}},
        {"image": {"reference": "x"}},
    ],
)
def test_good_volumes_are_accepted(source: Object) -> None:
    assert volume_errors(**source) == []


def test_a_claim_made_for_a_volume_is_not_used_by_another() -> None:
    volumes: list[Object] = [
        {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}},
        {"name": "w", "persistentVolumeClaim": {"claimName": "x-v"}},
    ]
    (error,) = errors_of(PODS, pod({"volumes": volumes}))
    assert "must not reference a PVC that gets created for an ephemeral volume" in error


def test_devices_are_claims_used_once() -> None:
    volumes: list[Object] = [
        {"name": "p", "persistentVolumeClaim": {"claimName": "c"}},
        {"name": "e", "emptyDir": {}},
    ]
    good = [{"name": "p", "devicePath": "/dev/a"}]
    assert errors_of(PODS, pod({"volumes": volumes, **container(volumeDevices=good)})) == []
    bad = [*good, *good, {"name": "e", "devicePath": "/a/../b"}, {"name": "z"}]
    errors = errors_of(PODS, pod({"volumes": volumes, **container(volumeDevices=bad)}))
    path = "spec.containers[0].volumeDevices"
    assert f'{path}[1].name: Invalid value: "p": must be unique' in errors
    assert f'{path}[1].devicePath: Invalid value: "/dev/a": must be unique' in errors
    assert any("can only use volume source type of PersistentVolumeClaim" in e for e in errors)
    assert any("can not contain backsteps ('..')" in e for e in errors)
    assert f'{path}[3].name: Not found: "z"' in errors
    assert f"{path}[3].devicePath: Required value" in errors


@pytest.mark.parametrize(
    ("mount", "error"),
    [
        ({"mountPropagation": "Odd"}, 'mountPropagation: Unsupported value: "Odd"'),
        (
            {"mountPropagation": "Bidirectional"},
            "mountPropagation: Forbidden: Bidirectional mount propagation is available only to",
        ),
        (
            {"recursiveReadOnly": "Enabled"},
            "recursiveReadOnly: Forbidden: may only be specified when",
        ),
        ({"recursiveReadOnly": "Odd"}, 'recursiveReadOnly: Unsupported value: "Odd"'),
        ({"subPath": "a", "subPathExpr": "/b"}, 'subPathExpr: Invalid value: "/b": must be a rela'),
    ],
)
def test_bad_mounts_are_refused(mount: Object, error: str) -> None:
    mounts = [{"name": "v", "mountPath": "/x", **mount}]
    spec = {"volumes": [{"name": "v", "emptyDir": {}}], **container(volumeMounts=mounts)}
    errors = errors_of(PODS, pod(spec))
    assert any(f"spec.containers[0].volumeMounts.{error}" in found for found in errors), errors


@pytest.mark.parametrize(
    ("resource_name", "divisor", "fine"),
    [
        ("limits.cpu", "1m", True),
        ("limits.cpu", "10m", False),
        ("requests.memory", "1Mi", True),
        ("requests.memory", "2Mi", False),
        ("limits.hugepages-2Mi", "1Mi", True),
        ("limits.hugepages-2Mi", "3", False),
        ("limits.ephemeral-storage", "1G", True),
        ("limits.cpu", "nonsense", False),
        ("limits.cpu", None, True),
    ],
)
def test_divisors_are_units(resource_name: str, divisor: str | None, fine: bool) -> None:
    reference = {"resource": resource_name, "divisor": divisor}
    env = [{"name": "A", "valueFrom": {"resourceFieldRef": reference}}]
    assert (errors_of(PODS, pod(container(env=env))) == []) is fine


@pytest.mark.parametrize(
    ("field_path", "fine"),
    [
        ("metadata.name", True),
        ("status.podIPs", True),
        ("metadata.annotations['example.com/A']", True),
        ("metadata.labels['a b']", False),
        ("spec.containers['x']", False),
        ("metadata.labels", False),
    ],
)
def test_variables_show_fields_of_the_pod(field_path: str, fine: bool) -> None:
    env = [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": field_path}}}]
    assert (errors_of(PODS, pod(container(env=env))) == []) is fine


def test_ephemeral_containers_come_and_stay() -> None:
    old = created(PODS, pod())
    debug = {"name": "d", "image": "x", "targetContainerName": "c"}
    new = merged(old, {"spec": {"ephemeralContainers": [debug]}})
    PODS.default(new)
    assert ephemeral_container_errors(new, old) == []
    (error,) = ephemeral_container_errors(old, new)
    assert 'existing ephemeral containers "d" may not be removed' in str(error)
    changed = merged(new, {})
    changed["spec"]["ephemeralContainers"][0]["image"] = "y"
    (error,) = ephemeral_container_errors(changed, new)
    assert "may not be changed" in str(error)
    odd = merged(new, {})
    odd["spec"]["ephemeralContainers"][0] |= {"ports": [{"containerPort": 1, "protocol": "TCP"}],
                                              "targetContainerName": "z"}  # fmt: skip
    errors = [str(e) for e in ephemeral_container_errors(odd, old)]
    assert 'spec.ephemeralContainers[0].targetContainerName: Not found: "z"' in errors
    assert any("cannot be set for an Ephemeral Container" in e for e in errors)
