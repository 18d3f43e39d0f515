"""One call of ``kubectl ws`` and its kin: the kubeconfig, and the server it leads to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from skerry.app.kubeconfig_files import load
from skerry.cli.flags import Parsed
from skerry.cli.hub_client import HubClient, Overrides, Target, target_of
from skerry.wire.kubeconfig import Kubeconfig, KubeconfigError, kubeconfig_paths

PREFIX = "/clusters/"
PATH = re.compile(r"^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?:)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")


class CommandError(Exception):
    """Why a command did not do what it was asked to."""


@dataclass(slots=True)
class Session:
    """One call of the plugin: the kubeconfig, and the server it leads to."""

    config: Kubeconfig
    overrides: Overrides
    target: Target
    client: HubClient

    @classmethod
    def open(cls, flags: Parsed, environment: Mapping[str, str]) -> Session:
        explicit = flags.value("kubeconfig")
        if explicit and not Path(explicit).exists():
            # In kubectl's own words.
            raise KubeconfigError(f"stat {explicit}: no such file or directory")
        config = load(
            kubeconfig_paths(
                flags.value("kubeconfig"),
                environment.get("KUBECONFIG", ""),
                Path(environment.get("HOME", "")),
            )
        )
        overrides = Overrides(
            flags.value("context"),
            flags.value("user"),
            flags.value("server"),
            flags.value("token"),
            flags.on("insecure-skip-tls-verify"),
            flags.value("certificate-authority"),
            flags.value("tls-server-name"),
        )
        target = target_of(config, overrides)
        return cls(config, overrides, target, HubClient(target))

    @property
    def context_name(self) -> str:
        return self.overrides.context or self.config.current

    def base_and_path(self) -> tuple[str, str]:
        """Return the URL before ``/clusters/`` and the path of the current workspace."""
        split = split_url(self.target.server)
        if split is None:
            raise CommandError(f'current URL "{self.target.server}" does not point to a workspace')
        return split

    def url(self, path: str, rest: str) -> str:
        """Return the URL of *rest* in the workspace *path*, on the current host."""
        split = split_url(self.target.server)
        base = split[0] if split is not None else bare_url(self.target.server)
        return f"{base}{PREFIX}{path}/{rest}"


def split_url(url: str) -> tuple[str, str] | None:
    """Return what comes before ``/clusters/`` and the workspace after it; None without one."""
    base, found, rest = url.partition(PREFIX)
    path = rest.partition("/")[0]
    return (base, path) if found and PATH.match(path) else None


def bare_url(url: str) -> str:
    """Return *url* without its path."""
    scheme, found, rest = url.partition("://")
    return f"{scheme}{found}{rest.partition('/')[0]}"
