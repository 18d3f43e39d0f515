"""What edges and bootstrap credentials may do: little, and in their own mailbox only.

Neither is asked of RBAC. Nothing that anybody grants, inside the mailbox or out, adds to it.
"""

from __future__ import annotations

from skerry.api.edge_identity import EDGE_GROUPS, LAPSED, MAILBOX_NAMESPACE, account_name
from skerry.api.kinds import GroupResource
from skerry.logic.machinery.edges.rights import (
    CHANGE,
    LOGICAL_CLUSTERS,
    MAKE_TYPES,
    READ,
    REQUESTS,
    may,
)
from skerry.logic.machinery.edges.tunnel import TUNNEL_PATH
from skerry.logic.machinery.workspaces.principals import ACCOUNT_PREFIX
from skerry.server.access import Attributes, Decision
from skerry.server.extensions import BATCH, CA_BUNDLE, ROOT, WATCH
from skerry.server.user import User
from skerry.server.workspaces.mailboxes import Mailboxes

_ALLOWED = Decision(True)
_DENIED = Decision(False, "access denied")
_LAPSED = Decision(
    False, "the certificate has lapsed and is good for requesting its successor only"
)
_ACCOUNTS = GroupResource("", "serviceaccounts")
# Discovery, and the extensions, each part of which is authorized on its own.
_READABLE = frozenset(("/", "/api", "/apis", "/version", ROOT, CA_BUNDLE))
_READABLE_BELOW = ("/api/", "/apis/")
_POSTED = frozenset((WATCH, BATCH))


def is_for_approvers(attributes: Attributes) -> bool:
    """Tell whether an action in a mailbox is for whoever lets its edge in, or shuts it out."""
    if attributes.path:
        return attributes.verb == "get" and _is_discovery(attributes.path)
    kind = (attributes.group, attributes.resource)
    if kind == REQUESTS:
        if attributes.subresource == "approval":
            return attributes.verb in CHANGE
        return attributes.verb in READ and not attributes.subresource
    if kind == LOGICAL_CLUSTERS:
        return attributes.verb in ("get", "patch", "update") and not attributes.subresource
    return False


def _is_discovery(path: str) -> bool:
    return path in _READABLE or path.startswith(_READABLE_BELOW)


class EdgeAuthorizer:
    """Decides for edges and bootstrap credentials."""

    def __init__(self, mailboxes: Mailboxes) -> None:
        self._mailboxes = mailboxes

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        if not user.home or attributes.cluster != user.home:
            return _DENIED
        if user.name.startswith(ACCOUNT_PREFIX) and self._mailboxes.is_shut(user.home):
            return _DENIED
        if user.groups != EDGE_GROUPS or LAPSED in user.extra:
            if _is_request(attributes):
                return _ALLOWED
            return _LAPSED if LAPSED in user.extra else _DENIED
        if attributes.path:
            return _ALLOWED if _may_visit(attributes) else _DENIED
        kind = GroupResource(attributes.group, attributes.resource)
        if user.name.startswith(ACCOUNT_PREFIX) and self._may_as_before(user, kind, attributes):
            return _ALLOWED
        allowed = may(
            self._mailboxes.scope(user.home),
            attributes.verb,
            kind,
            attributes.subresource,
            attributes.namespace,
            attributes.name,
        )
        return _ALLOWED if allowed else _DENIED

    def _may_as_before(self, user: User, kind: GroupResource, attributes: Attributes) -> bool:
        """Tell whether this is what only syncers with a ServiceAccount do.

        They renew its token, learn of types by what makes them, and of their SyncTarget's UID,
        which a certificate names, by the mailbox's LogicalCluster.
        """
        if kind in MAKE_TYPES:
            return attributes.verb in ("list", "watch")
        if kind == LOGICAL_CLUSTERS:
            return (attributes.verb, attributes.subresource) == ("get", "")
        return kind == _ACCOUNTS and self._renews_token(user, attributes)

    def _renews_token(self, user: User, attributes: Attributes) -> bool:
        mailbox = self._mailboxes.mailbox(user.home)
        target = "" if mailbox is None else self._mailboxes.sync_target(mailbox)
        own = account_name(target)
        return (
            bool(target)
            and user.name == f"{ACCOUNT_PREFIX}{MAILBOX_NAMESPACE}:{own}"
            and (attributes.verb, attributes.subresource) == ("create", "token")
            and (attributes.namespace, attributes.name) == (MAILBOX_NAMESPACE, own)
        )


def _may_visit(attributes: Attributes) -> bool:
    if attributes.verb in ("get", "head"):
        return _is_discovery(attributes.path) or attributes.path == TUNNEL_PATH
    return attributes.verb == "post" and attributes.path in _POSTED


def _is_request(attributes: Attributes) -> bool:
    """Tell whether this is about a request for a certificate; admission sees whose."""
    if (attributes.group, attributes.resource) != REQUESTS or attributes.subresource:
        return False
    return attributes.verb == "create" or (
        attributes.verb in ("get", "watch") and bool(attributes.name)
    )
