"""Processes of the tests: the server under test and the kubectl that drives it.

``SKERRY_E2E_KUBECTL=kubectl.1.29 pytest tests/e2e/test_kubectl_*`` drives it with another kubectl
than the one that PATH finds by that name.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.kit.ports import free_ports

OLDEST_KUBECTL = (1, 29)
_KUBECTL = os.environ.get("SKERRY_E2E_KUBECTL", "kubectl")
_READY = re.compile(r"skerry \w+ ready at (https://\S+)")
# Between two looks: a kubectl started over and over takes the time of what it waits for.
_PAUSE_SECONDS = 0.2
SKERRY = str(Path(sys.executable).with_name("skerry"))


class ServerProcess:
    """One ``skerry serve``, started, killed and started again over the same folder and port.

    *within* is a command that runs another one somewhere else, such as ``nsenter``.
    """

    def __init__(self, directory: Path, *flags: str, within: Sequence[str] = ()) -> None:
        self._within = within
        self.data_dir = directory / "data"
        self._flags = flags
        self._log = directory / "server.log"
        (self._port,) = free_ports(1)
        self._process: subprocess.Popen[str] | None = None
        self.url = ""

    @property
    def kubeconfig(self) -> Path:
        return self.data_dir / "admin.kubeconfig"

    @property
    def log(self) -> str:
        return self._log.read_text()

    def start(self) -> None:
        """Start and return once requests are answered; always on the same port."""
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                [
                    *self._within,
                    SKERRY,
                    "serve",
                    *("--data-dir", str(self.data_dir), "--port", str(self._port)),
                    *self._flags,
                ],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        ready = _READY.search(line)
        if ready is None:
            self._process.wait()
            raise AssertionError(f"the server did not start: {line}{self.log}")
        self.url = ready[1]

    def kill(self) -> None:
        """End it as a power switch would."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """End it politely and return its exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> int:
        if self._process is None:
            return 0
        self._process.send_signal(how)
        code = self._process.wait(timeout=120)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None
        return code


@dataclass(frozen=True)
class Result:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str


class Kubectl:
    """kubectl with a kubeconfig, a home and a namespace of its own."""

    def __init__(
        self,
        kubeconfig: Path,
        home: Path,
        namespace: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.kubeconfig = kubeconfig
        self.home = home
        self.namespace = namespace
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "KUBECONFIG": str(kubeconfig),
            "KUBECACHEDIR": str(home / "cache"),
            **(environment or {}),
        }

    def __call__(
        self, *arguments: str, fails: int | None = None, stdin: Any = None, **environment: str
    ) -> Result:
        """Run kubectl; it must succeed, or end with the code *fails*."""
        process = self.start(*arguments, **environment)
        out, err = process.communicate(_text(stdin), timeout=120)
        wanted = fails or 0
        assert process.returncode == wanted, (
            f"kubectl {' '.join(arguments)}: exit code {process.returncode}, want {wanted}\n"
            f"{out}{err}"
        )
        return Result(process.returncode, out, err)

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """Start kubectl and let it run."""
        namespace = ("-n", self.namespace) if self.namespace else ()
        return subprocess.Popen(
            [_KUBECTL, *namespace, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**self._environment, **environment},
        )

    def json(self, *arguments: str) -> Any:
        """Return what kubectl prints with ``-o json``."""
        return json.loads(self(*arguments, "-o", "json").out)

    def rows(self, *arguments: str) -> list[list[str]]:
        """Return the lines kubectl prints, head included, each cut at two or more blanks."""
        return [re.split(r" {2,}", line.strip()) for line in self(*arguments).out.splitlines()]

    def until(self, wanted: str, *arguments: str) -> str:
        """Repeat a command until it prints *wanted*; for what other processes bring about."""
        deadline = time.monotonic() + 60
        while True:
            out = self(*arguments).out
            if wanted in out:
                return out
            assert time.monotonic() < deadline, f"{arguments}: never printed {wanted!r}: {out}"
            time.sleep(_PAUSE_SECONDS)

    def again(self, *arguments: str) -> None:
        """Repeat a command until it succeeds; for a server that is finding its feet."""
        deadline = time.monotonic() + 60
        while True:
            process = self.start(*arguments)
            _, err = process.communicate(timeout=120)
            if process.returncode == 0:
                return
            assert time.monotonic() < deadline, f"{arguments}: never succeeded: {err}"
            time.sleep(_PAUSE_SECONDS)

    def within(self, namespace: str) -> Kubectl:
        return Kubectl(self.kubeconfig, self.home, namespace)


def _text(stdin: Any) -> str | None:
    if stdin is None or isinstance(stdin, str):
        return stdin
    documents: Sequence[Any] = stdin if isinstance(stdin, list) else [stdin]
    return yaml.safe_dump_all(documents)


def refuse_old_kubectl() -> None:
    """Raise, in one sentence, unless PATH has a kubectl that is new enough."""
    oldest = ".".join(map(str, OLDEST_KUBECTL))
    wanted = f"the end-to-end tests need kubectl {oldest} or newer on PATH: install it"
    if shutil.which(_KUBECTL) is None:
        raise RuntimeError(f"{wanted}; none was found")
    printed = subprocess.run(
        [_KUBECTL, "version", "--client", "-o", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
    version = kubectl_version(printed.stdout)
    if version < OLDEST_KUBECTL:
        raise RuntimeError(f"{wanted}; found {version[0]}.{version[1]}")


def kubectl_version(printed: str) -> tuple[int, int]:
    """Return major and minor of what ``kubectl version --client -o json`` tells."""
    found = re.search(r'"gitVersion":\s*"v(\d+)\.(\d+)', printed)
    return (int(found[1]), int(found[2])) if found else (0, 0)


@contextlib.contextmanager
def reserved(count: int) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
