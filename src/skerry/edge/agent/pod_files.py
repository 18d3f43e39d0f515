"""The files every pod with a network of its own finds in /etc: hosts, resolv.conf, hostname.

Their text is kubelet's, and pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from skerry.api.objects import Object
from skerry.edge.agent.runtime import Mount, Volume
from skerry.edge.agent.service_names import DOMAIN

_FILES = ("hosts", "hostname", "resolv.conf")
_HEAD = "# Kubernetes-managed hosts file.\n"
_LOOPBACK = (
    "127.0.0.1\tlocalhost\n"
    "::1\tlocalhost ip6-localhost ip6-loopback\n"
    "fe00::0\tip6-localnet\n"
    "fe00::0\tip6-mcastprefix\n"
    "fe00::1\tip6-allnodes\n"
    "fe00::2\tip6-allrouters\n"
)
# What a name may be written as before the search list is tried.
_NDOTS = "5"


def write_files(directory: Path, pod: Object, address: str, dns_address: str) -> None:
    """Write what every container of a pod finds in /etc."""
    directory.mkdir(parents=True, exist_ok=True)
    machines = Path("/etc/resolv.conf")
    known = machines.read_text() if machines.exists() else ""
    texts = (
        hosts_file(pod, address),
        f"{host_name(pod)}\n",
        resolver_file(pod, dns_address, known),
    )
    for name, text in zip(_FILES, texts, strict=True):
        (directory / name).write_text(text)


def files_in_etc(directory: Path, taken: Collection[str]) -> list[Mount]:
    """Return the mounts of these files, except where a container has others."""
    paths = {f"/etc/{name}": directory / name for name in _FILES}
    return [Mount(path, Volume(source)) for path, source in paths.items() if path not in taken]


def host_name(pod: Object) -> str:
    """Return what a pod calls itself; the kernel takes 63 characters."""
    name = str(pod["spec"].get("hostname") or pod["metadata"]["name"])
    return name[:63].rstrip("-.")


def hosts_file(pod: Object, address: str) -> str:
    """Return /etc/hosts of a pod."""
    spec, name = pod["spec"], host_name(pod)
    if spec.get("subdomain"):
        namespace = pod["metadata"]["namespace"]
        name = f"{name}.{spec['subdomain']}.{namespace}.svc.{DOMAIN}\t{name}"
    text = f"{_HEAD}{_LOOPBACK}{address}\t{name}\n"
    aliases = spec.get("hostAliases") or ()
    if aliases:
        text += "\n# Entries added by HostAliases.\n"
    for alias in aliases:
        text += f"{alias['ip']}\t{chr(9).join(alias.get('hostnames') or ())}\n"
    return text


def resolver_file(pod: Object, dns_address: str, machines: str) -> str:
    """Return /etc/resolv.conf of a pod; *machines* is that of the machine."""
    spec, config = pod["spec"], pod["spec"].get("dnsConfig") or {}
    policy = spec.get("dnsPolicy", "ClusterFirst")
    if policy == "Default" or (policy == "ClusterFirst" and spec.get("hostNetwork")):
        return machines
    servers: list[str] = []
    searches: list[str] = []
    options: dict[str, str | None] = {}
    if policy != "None":
        namespace = pod["metadata"]["namespace"]
        servers = [dns_address]
        searches = [f"{namespace}.svc.{DOMAIN}", f"svc.{DOMAIN}", DOMAIN]
        options = {"ndots": _NDOTS}
    servers += config.get("nameservers") or ()
    searches += config.get("searches") or ()
    for option in config.get("options") or ():
        options[option["name"]] = option.get("value")
    return _resolver(servers, searches, options)


def _resolver(servers: list[str], searches: list[str], options: Mapping[str, str | None]) -> str:
    lines = []
    if searches:
        lines.append("search " + " ".join(dict.fromkeys(searches)))
    lines += [f"nameserver {server}" for server in dict.fromkeys(servers)]
    if options:
        words = [name if value is None else f"{name}:{value}" for name, value in options.items()]
        lines.append("options " + " ".join(words))
    return "".join(f"{line}\n" for line in lines)
