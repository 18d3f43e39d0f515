"""controller-runtime's envtest: its two programs with the very flags it gives them."""

from __future__ import annotations

import json
import re
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from skerry.kit.clock import SystemClock
from skerry.server.security.pki import Authority, new_ca
from tests.kit.e2e.processes import Kubectl
from tests.kit.ports import free_ports
from tests.kit.server.certificates import client_context

SKERRY = str(Path(sys.executable).with_name("skerry"))
Answer = tuple[int, Any]


@pytest.fixture(scope="module")
def assets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("assets")
    made = subprocess.run(
        [SKERRY, "envtest", "assets", str(directory)], check=True, capture_output=True, text=True
    )
    return Path(made.stdout.strip())


@contextmanager
def started(*command: str, url: str) -> Iterator[subprocess.Popen[str]]:
    """Run *command* until it is well, as envtest does: by asking every 100 ms, trusting anybody."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        while True:
            try:
                with urllib.request.urlopen(url, context=trusting) as answer:
                    assert answer.status == 200
                    break
            except urllib.error.URLError:
                assert process.poll() is None, process.communicate()
                time.sleep(0.1)
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 0


class Api:
    """What a client with a certificate of envtest's authority is answered."""

    def __init__(self, url: str, context: ssl.SSLContext) -> None:
        self._url = url
        self._context = context

    def __call__(self, method: str, path: str, body: object = None) -> Answer:
        request = urllib.request.Request(
            self._url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, context=self._context) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            return refused.code, json.load(refused)


class Started:
    """A control plane of envtest's."""

    def __init__(self, api: Api, certificates: Path) -> None:
        self.api = api
        self.certificates = certificates


@pytest.fixture(scope="module")
def plane(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    certificates = tmp_path_factory.mktemp("k8s_test_framework_")
    clock = SystemClock()
    # Two authorities: one vouches for the server, the other for its users.
    serving, users = new_ca("serving", clock), new_ca("users", clock)
    shown = Authority(serving, clock).server("localhost", ["localhost", "127.0.0.1"])
    (certificates / "apiserver.crt").write_bytes(shown.certificate)
    (certificates / "apiserver.key").write_bytes(shown.key)
    (certificates / "client-cert-auth-ca.crt").write_bytes(users.certificate)
    client, peer, port = free_ports(3)
    flags = (
        "--allow-privileged=true",
        "--authorization-mode=RBAC",
        "--bind-address=127.0.0.1",
        f"--cert-dir={certificates}",
        f"--client-ca-file={certificates}/client-cert-auth-ca.crt",
        "--disable-admission-plugins=ServiceAccount",
        f"--etcd-servers=http://127.0.0.1:{client}",
        f"--secure-port={port}",
        f"--service-account-issuer=https://127.0.0.1:{port}/",
        f"--service-account-key-file={certificates}/sa-signer.crt",
        f"--service-account-signing-key-file={certificates}/sa-signer.key",
        "--service-cluster-ip-range=10.0.0.0/24",
    )
    admin = Authority(users, clock).client("admin", ["system:masters"])
    etcd = (
        str(assets / "etcd"),
        f"--advertise-client-urls=http://127.0.0.1:{client}",
        f"--data-dir={certificates}/etcd",
        f"--listen-client-urls=http://127.0.0.1:{client}",
        f"--listen-peer-urls=http://127.0.0.1:{peer}",
    )
    server = f"https://127.0.0.1:{port}"
    with (
        started(*etcd, url=f"http://127.0.0.1:{client}/health"),
        started(str(assets / "kube-apiserver"), *flags, url=f"{server}/healthz"),
    ):
        yield Started(Api(server, client_context(serving.certificate, admin)), certificates)


@pytest.mark.parametrize("program", ["kube-apiserver", "etcd"])
def test_help_ends_well_and_names_no_flag_of_older_versions(assets: Path, program: str) -> None:
    said = subprocess.run(
        [str(assets / program), "--help"], capture_output=True, text=True, check=True
    )
    assert not re.search(r"(?m)^\s*--(insecure-port|unsafe-no-fsync)\b", said.stdout + said.stderr)


def test_a_client_that_names_no_host_is_shown_the_given_certificate(plane: Started) -> None:
    status, found = plane.api("GET", "/version")
    assert (status, found["minor"]) == (200, "32")


def test_the_certificates_groups_are_the_users(plane: Started) -> None:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    status, found = plane.api("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
    assert status == 201
    user = found["status"]["userInfo"]
    assert (user["username"], user["groups"]) == (
        "admin",
        ["system:masters", "system:authenticated"],
    )


def test_a_pod_needs_no_service_account(plane: Started) -> None:
    namespace = {"metadata": {"name": "without-account"}}
    assert plane.api("POST", "/api/v1/namespaces", namespace)[0] == 201
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    status, made = plane.api("POST", "/api/v1/namespaces/without-account/pods", pod)
    assert status == 201
    assert "serviceAccountName" not in made["spec"]
    assert "volumes" not in made["spec"]


def test_services_get_addresses_of_the_given_range(plane: Started) -> None:
    service = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
    status, made = plane.api("POST", "/api/v1/namespaces/default/services", service)
    assert status == 201, made
    assert made["spec"]["clusterIP"].startswith("10.0.0.")


def test_no_controller_runs_as_with_the_programs_it_stands_for(plane: Started) -> None:
    assert plane.api("POST", "/api/v1/namespaces", {"metadata": {"name": "stays"}})[0] == 201
    assert plane.api("DELETE", "/api/v1/namespaces/stays")[0] == 200
    _, found = plane.api("GET", "/api/v1/namespaces/stays")
    assert found["status"]["phase"] == "Terminating"


def test_the_administrators_kubeconfig_asks_for_the_servers_own_certificate(
    plane: Started, tmp_path: Path
) -> None:
    kubeconfig = plane.certificates / "skerry" / "admin.kubeconfig"
    found = Kubectl(kubeconfig, tmp_path)("get", "namespace", "default", "-o", "name")
    assert found.out == "namespace/default\n"


def test_a_rule_that_cannot_be_left_out_is_refused_in_a_sentence(
    assets: Path, tmp_path: Path
) -> None:
    ended = subprocess.run(
        [
            str(assets / "kube-apiserver"),
            f"--cert-dir={tmp_path}",
            "--disable-admission-plugins=NamespaceLifecycle",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert "--disable-admission-plugins: NamespaceLifecycle cannot be left out" in ended.stderr
    assert "Traceback" not in ended.stderr
