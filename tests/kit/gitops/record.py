"""Write down the shapes of a kube-apiserver's answers.

``python -m tests.kit.gitops.record KUBECONFIG`` prints them; the cluster is to have nothing in it
and no controllers, whose writes would be among the answers. Only shapes are kept.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.kit.gitops.argo import cache_sync, client_side_apply, server_side_apply
from tests.kit.gitops.asking import Server
from tests.kit.gitops.flux import SsaManager
from tests.kit.gitops.objects import (
    CONFIG_MAPS,
    DEFINITIONS,
    DEPLOYMENTS,
    NAMESPACES,
    WIDGETS,
    config_map,
    definition,
    deployment,
    namespace,
    widget,
)


def flux_apply(server: Server) -> dict[str, Any]:
    """Apply twice, change something, and prune; as a Kustomization lives."""
    manager = SsaManager(server)
    done = [
        manager.apply(DEFINITIONS, definition()),
        manager.apply(NAMESPACES, namespace()),
    ]
    manager.wait_for_definition(f"{DEFINITIONS}/widgets.trace.example")
    first = [(CONFIG_MAPS, config_map()), (WIDGETS, widget()), (DEPLOYMENTS, deployment())]
    done += [manager.apply(*each) for each in first]
    done += [manager.apply(*each) for each in first]
    done += [manager.apply(WIDGETS, widget(2)), manager.apply(CONFIG_MAPS, config_map(text="bye"))]
    kept = {f"{NAMESPACES}/shop", f"{DEFINITIONS}/widgets.trace.example"}
    manager.prune(kept)
    return {"outcomes": done, "shapes": manager.shapes}


def trace(server: Server) -> dict[str, Any]:
    """Return the shapes of everything the tools ask."""
    flux = flux_apply(server)
    return {
        "flux": flux,
        "client-side apply": client_side_apply(server, DEPLOYMENTS, deployment("csa")),
        "server-side apply": server_side_apply(server, DEPLOYMENTS, deployment("ssa")),
        "cache sync": cache_sync(server).recorded(),
    }


if __name__ == "__main__":
    json.dump(trace(Server(Path(sys.argv[1]))), sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")
