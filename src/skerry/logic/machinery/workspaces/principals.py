"""How a principal of one logical cluster is called in the others.

Users that the hub itself authenticates (certificates, static tokens) are the same everywhere. A
ServiceAccount, and whomever a workspace's administrator impersonates, exists in one logical
cluster only: its *home*. There it goes by its plain name. Seen from anywhere else it is a foreign
principal: it goes by a name that includes its home, and it is in no group, so that nothing counts
there but what was granted to that very name.

| at home | elsewhere |
|---|---|
| ``system:serviceaccount:NAMESPACE:NAME`` | ``system:kcp:serviceaccount:HOME:NAMESPACE:NAME`` |
| ``NAME`` | ``system:kcp:user:HOME:NAME`` |

HOME is the name of a logical cluster, which has no colon; so no two principals share a name.
"""

from __future__ import annotations

from functools import lru_cache

ACCOUNT_PREFIX = "system:serviceaccount:"
FOREIGN_ACCOUNT_PREFIX = "system:kcp:serviceaccount:"
FOREIGN_USER_PREFIX = "system:kcp:user:"
SCOPED_USERS = (ACCOUNT_PREFIX, FOREIGN_ACCOUNT_PREFIX, FOREIGN_USER_PREFIX)
# In the extra of a ServiceAccount's user: of which logical cluster it is.
CLUSTER_EXTRA = "authentication.kubernetes.io/cluster-name"
# What an exporter's maximal permission policy calls users and groups of workspaces that bind.
BOUND_PREFIX = "apis.kcp.io:binding:"
# What users and groups are called that only the server makes: no certificate or token of the
# hub's own users may carry such a name.
RESERVED = (*SCOPED_USERS, "system:serviceaccounts", "system:edge", BOUND_PREFIX)
# In maximal permission policies only: all principals that are at home where the export is bound.
SCOPED = "system:kcp:scoped"


@lru_cache(maxsize=4096)
def qualified_name(name: str, home: str) -> str:
    """Return what the principal *name* of the cluster *home* is called elsewhere."""
    if name.startswith(ACCOUNT_PREFIX):
        return f"{FOREIGN_ACCOUNT_PREFIX}{home}:{name[len(ACCOUNT_PREFIX) :]}"
    return f"{FOREIGN_USER_PREFIX}{home}:{name}"
