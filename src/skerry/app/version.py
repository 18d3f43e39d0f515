"""What ``/version`` says: the Kubernetes whose API a server speaks."""

from __future__ import annotations

import platform

KUBERNETES = "v1.32.0"
# Scripts written for kcp look for its name in a hub's version; kubectl compares the numbers with
# its own, and what is served is the API of that Kubernetes.
KCP = f"{KUBERNETES}+kcp-v0.11.0"


def version_document(git_version: str) -> dict[str, str]:
    """Return the document that names *git_version*."""
    major, minor, _ = git_version.removeprefix("v").split(".", 2)
    return {
        "major": major,
        "minor": minor,
        "gitVersion": git_version,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": platform.python_implementation().lower(),
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }
