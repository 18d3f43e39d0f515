"""The kinds of a hub beyond Kubernetes' own, as CustomResourceDefinitions.

Each module has the kinds of one API group. The same definitions are served by the hub, exported
from its workspaces, and written to ``config/`` for other servers.
"""
