"""What the commands that rotate keys share: they ask a running server, as its administrator."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from skerry.app.admin_kubeconfig import admin_kubeconfig
from skerry.app.key_files import KeyFileError
from skerry.app.kubeconfig_files import load
from skerry.cli.common_flags import with_flags
from skerry.cli.hub_client import HubClient, Overrides, RequestFailed, target_of
from skerry.cli.options import FILE, FOLDER
from skerry.cli.printing import show
from skerry.wire.kubeconfig import KubeconfigError

# The context of a hub's kubeconfig that is no workspace's.
_HUB_CONTEXT = "system:admin"
KEYS_PATH = "/extensions/v1/keys"
_FLAGS = [
    click.option(
        "--data-dir",
        type=FOLDER,
        default=Path(".skerry"),
        show_default=True,
        help="Folder of the server whose keys are rotated.",
    ),
    click.option(
        "--kubeconfig",
        type=FILE,
        help="Kubeconfig of the server's administrator  [default: DATA-DIR/admin.kubeconfig]",
    ),
]


def server_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the flags that lead to a running server and its files."""
    return with_flags(command, _FLAGS)


class KeyClient:
    """Asks one server about its keys."""

    def __init__(self, kubeconfig: Path, path: str = KEYS_PATH) -> None:
        if not kubeconfig.exists():
            raise KubeconfigError(f"{kubeconfig} is not there; name one with --kubeconfig")
        config = load([kubeconfig])
        context = _HUB_CONTEXT if _HUB_CONTEXT in config.contexts else ""
        target = target_of(config, Overrides(context=context))
        parts = urlsplit(target.server)
        self._url = f"{parts.scheme}://{parts.netloc}{path}"
        self._client = HubClient(target)

    def status(self) -> dict[str, Any]:
        """Return which keys there are, and who has them."""
        return self._client.get(self._url)

    def step(self, operation: str, **more: str) -> dict[str, Any]:
        """Take one step of a rotation."""
        return self._client.post(self._url, {"operation": operation, **more})

    def close(self) -> None:
        self._client.close()


@contextmanager
def asking(
    command: str, data_dir: Path, kubeconfig: Path | None, path: str = KEYS_PATH
) -> Iterator[KeyClient]:
    """Give a client; turn what goes wrong into one line and exit code 1."""
    client: KeyClient | None = None
    try:
        client = KeyClient(kubeconfig or admin_kubeconfig(data_dir), path)
        yield client
    except (RequestFailed, KubeconfigError, KeyFileError, OSError) as error:
        show(f"{command}: {error}", error=True)
        sys.exit(1)
    finally:
        if client is not None:
            client.close()
