"""Runs the pod of a Deployment as a node would: its image, its command, its account, its volumes.

What a kubelet does, for one container: Secrets and claims as folders, the account's token where a
pod finds it, the address of the API server in the environment.
"""

from __future__ import annotations

import base64
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from skerry.runtime.kubeconfig import load
from tests.kit.e2e.processes import Kubectl
from tests.kit.image.building import Image
from tests.kit.image.running import container

_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


class PodProcess:
    """The one container of the pod, as its own user on a read-only root."""

    def __init__(
        self, image: Image, kubectl: Kubectl, folder: Path, pod: Mapping[str, Any]
    ) -> None:
        self.folder = folder
        self._kubectl = kubectl
        self._pod = pod
        spec = pod["spec"]
        security = spec["securityContext"]
        self._user = (security["runAsUser"], security["runAsGroup"])
        (inner,) = spec["containers"]
        config = load([kubectl.kubeconfig])
        address = urlsplit(config.server)
        shown = {_ACCOUNT: self._account(config.ca)}
        volumes = {volume["name"]: self._volume(volume) for volume in spec["volumes"]}
        for mount in inner["volumeMounts"]:
            if mount["mountPath"] not in (_ACCOUNT, "/tmp"):
                shown[mount["mountPath"]] = volumes[mount["name"]]
        environment = {
            **image.environment,
            "KUBERNETES_SERVICE_HOST": address.hostname or "",
            "KUBERNETES_SERVICE_PORT": str(address.port),
        }
        of_pod = Image(
            image.root, environment, image.working_directory,
            user=":".join(map(str, self._user)), entrypoint=list(inner["command"]),
        )  # fmt: skip
        self._command = container(of_pod, folder / "bundle", inner["args"], shown)
        self.log = folder / "pod.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)

    def stop(self) -> int:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(timeout=60)

    def _account(self, ca: bytes) -> Path:
        namespace = self._pod["metadata"]["namespace"]
        account = self._pod["spec"]["serviceAccountName"]
        token = self._kubectl("-n", namespace, "create", "token", account).out.strip()
        return self._folder("account", {"token": token.encode(), "ca.crt": ca,
                                        "namespace": namespace.encode()})  # fmt: skip

    def _volume(self, volume: Mapping[str, Any]) -> Path:
        files = {}
        if "secret" in volume:
            name, namespace = volume["secret"]["secretName"], self._pod["metadata"]["namespace"]
            found = self._kubectl.json("-n", namespace, "get", "secret", name)["data"]
            files = {key: base64.b64decode(value) for key, value in found.items()}
        return self._folder(volume["name"], files)

    def _folder(self, name: str, files: Mapping[str, bytes]) -> Path:
        """Make a volume that the pod's group may use."""
        folder = self.folder / name
        folder.mkdir(parents=True)
        for key, content in files.items():
            (folder / key).write_bytes(content)
            (folder / key).chmod(0o440)
            os.chown(folder / key, 0, self._user[1])
        os.chown(folder, 0, self._user[1])
        folder.chmod(0o2770)
        return folder
