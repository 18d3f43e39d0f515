"""Mailboxes as the server knows them: whose they are, whether they are open, what they hold.

A workspace is a mailbox when its name says so and its parent has the export of the edge API. It is
*open* while its SyncTarget exists and its edge is not revoked. Everybody but the hub's
administrators is shut out of a closed mailbox, whatever was granted inside. A revoked edge that
joins again is let in by certificates issued after the revocation; nobody else is.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
import orjson

from skerry.api.edge import EXPORT, SYNCER_CONFIGS, Mailbox
from skerry.api.edge_identity import (
    AUTO_APPROVAL,
    EDGE_GROUPS,
    MAILBOX_NAMESPACE,
    EdgeName,
    account_name,
)
from skerry.api.kcp.resources import SYNC_TARGETS
from skerry.api.keys import ObjectKey, type_prefix
from skerry.kit.timestamps import parse_rfc3339
from skerry.logic.machinery.edges.scope import NOTHING, Scope, scope_of, united
from skerry.logic.machinery.workspaces.names import parent_path
from skerry.logic.machinery.workspaces.principals import ACCOUNT_PREFIX
from skerry.server.change import Change
from skerry.server.codec import decode_as
from skerry.server.user import User
from skerry.server.watch.dispatcher import Dispatcher
from skerry.server.workspaces.records import Cluster
from skerry.server.workspaces.state import HubState, entries_of, follower
from skerry.store.base import Store

# Whichever export they come from: there is one workload API, but a hub may have several providers.
_SYNC_TARGETS = type_prefix(*SYNC_TARGETS.group_resource)[:-1]
_SYNCER_CONFIGS = type_prefix(*SYNCER_CONFIGS.group_resource)[:-1]
# Edges of a fleet get the same configuration; most specs are equal.
_SPECS = 256
_ALWAYS = datetime.max.replace(tzinfo=UTC)


class _Metadata(msgspec.Struct, gc=False):
    name: str
    uid: str = ""
    deletion: str | None = msgspec.field(name="deletionTimestamp", default=None)


class _SyncTarget(msgspec.Struct, gc=False):
    metadata: _Metadata


class _SyncerConfig(msgspec.Struct, gc=False):
    metadata: _Metadata
    spec: msgspec.Raw = msgspec.Raw(b"{}")


_sync_targets = msgspec.json.Decoder(_SyncTarget)
_syncer_configs = msgspec.json.Decoder(_SyncerConfig)


def _nobody(_: str) -> None:
    """Nobody needs to know."""


class Mailboxes:
    """Every mailbox of a hub; ``closed`` is called with the cluster of one that was closed."""

    def __init__(self, state: HubState) -> None:
        self.state = state
        self._names: dict[Mailbox, str] = {}
        # By the name of their SyncTarget, which several inventory workspaces may use.
        self._by_name: dict[str, tuple[Mailbox, ...]] = {}
        self._uids: dict[ObjectKey, str] = {}
        self._scopes: dict[str, dict[str, Scope]] = {}
        self._specs: dict[bytes, Scope] = {}
        self._revoked: dict[str, str] = {}
        self.closed: Callable[[str], None] = _nobody

    # -- following the store -----------------------------------------------------------------

    async def follow(self, store: Store, dispatcher: Dispatcher) -> None:
        """Read everything and keep it up; call after ``HubState.follow``."""
        for prefix, observe in (
            (_SYNC_TARGETS, self._sync_target_changed),
            (_SYNCER_CONFIGS, self._config_changed),
        ):
            dispatcher.observe(prefix, follower(observe), self._reset)
            async for entry in entries_of(store, prefix):
                observe(ObjectKey.parse(entry.key), entry.value)
        dispatcher.observe(type_prefix("core.kcp.io", "logicalclusters"), self._cluster_changed)

    def _reset(self) -> None:
        for table in (
            self._names,
            self._by_name,
            self._uids,
            self._scopes,
            self._specs,
            self._revoked,
        ):
            table.clear()

    def _sync_target_changed(self, key: ObjectKey, value: bytes | None) -> None:
        metadata = None if value is None else decode_as(_sync_targets, value).metadata
        gone = metadata is None or metadata.deletion is not None
        uid = self._uids.get(key, "")
        if metadata is not None and not gone and metadata.uid == uid:
            return
        if uid:
            del self._uids[key]
            mailbox = Mailbox(key.cluster, uid)
            self._names.pop(mailbox, None)
            self._name(
                key.name, tuple(each for each in self.all_named(key.name) if each != mailbox)
            )
            for cluster in self._clusters_of(mailbox):
                self._close(cluster)
        if metadata is not None and not gone:
            self._uids[key] = metadata.uid
            mailbox = Mailbox(key.cluster, metadata.uid)
            self._names[mailbox] = key.name
            self._name(key.name, (*self.all_named(key.name), mailbox))

    def _name(self, name: str, mailboxes: tuple[Mailbox, ...]) -> None:
        if mailboxes:
            self._by_name[name] = mailboxes
        else:
            self._by_name.pop(name, None)

    def _clusters_of(self, mailbox: Mailbox) -> list[str]:
        """Return the clusters of a mailbox: of one provider, usually."""
        found = (
            self.state.children.get(provider, {}).get(mailbox.workspace)
            for provider, export in self.state.exports
            if export == EXPORT
        )
        return [cluster for cluster in found if cluster is not None]

    def _close(self, cluster: str) -> None:
        self.closed(cluster)
        for binding in (self.state.bindings.get(cluster) or {}).values():
            if binding.claims:
                # Watches through the view must not go on showing what was agreed to inside.
                self.state.claims_changed(binding.export_cluster, binding.export_name)

    def _config_changed(self, key: ObjectKey, value: bytes | None) -> None:
        if value is not None:
            spec = bytes(decode_as(_syncer_configs, value).spec)
            self._scopes.setdefault(key.cluster, {})[key.name] = self._scope_of(spec)
            return
        family = self._scopes.get(key.cluster, {})
        family.pop(key.name, None)
        if not family:
            self._scopes.pop(key.cluster, None)

    def _scope_of(self, spec: bytes) -> Scope:
        known = self._specs.get(spec)
        if known is None:
            if len(self._specs) >= _SPECS:
                self._specs.clear()
            known = self._specs[spec] = _read_scope(spec)
        return known

    def _cluster_changed(self, change: Change) -> None:
        cluster = ObjectKey.parse(change.event.key).cluster
        known = self.state.clusters.get(cluster)
        revoked = known.revoked if known is not None else ""
        before = self._revoked.get(cluster, "")
        if revoked:
            self._revoked[cluster] = revoked
        else:
            self._revoked.pop(cluster, None)
        if revoked and revoked != before:
            self._close(cluster)

    # -- asking --------------------------------------------------------------------------------

    def mailbox(self, cluster: str) -> Mailbox | None:
        """Return whose mailbox *cluster* is; None when it is none."""
        known = self.state.clusters.get(cluster)
        if known is None or known.mailbox is None:
            return None
        provider = self.state.resolve(parent_path(known.path))
        return known.mailbox if (provider, EXPORT) in self.state.exports else None

    def sync_target(self, mailbox: Mailbox) -> str:
        """Return the name of the SyncTarget a mailbox belongs to; empty when it is gone."""
        return self._names.get(mailbox, "")

    def all_named(self, name: str) -> tuple[Mailbox, ...]:
        """Return the mailboxes of all SyncTargets of a name."""
        return self._by_name.get(name, ())

    def named(self, cluster: str, name: str) -> Mailbox | None:
        """Return the mailbox of a SyncTarget of the inventory workspace *cluster*."""
        return next((each for each in self.all_named(name) if each.cluster == cluster), None)

    def cluster_of(self, mailbox: Mailbox) -> str | None:
        """Return the cluster of a mailbox; None while it has none."""
        return next(iter(self._clusters_of(mailbox)), None)

    def scope(self, cluster: str) -> Scope:
        """Return what the SyncerConfigs of *cluster* cover together."""
        family = self._scopes.get(cluster)
        if not family:
            return NOTHING
        return next(iter(family.values())) if len(family) == 1 else united(family.values())

    def is_closed(self, known: Cluster) -> bool:
        """Tell whether a cluster is a mailbox from which all but administrators are shut out."""
        if known.mailbox is None:
            return False
        mailbox = self.mailbox(known.name)
        return mailbox is not None and bool(known.revoked or not self.sync_target(mailbox))

    def is_closed_cluster(self, cluster: str) -> bool:
        """Tell whether *cluster* is a mailbox from which all but administrators are shut out."""
        known = self.state.clusters.get(cluster)
        return known is not None and self.is_closed(known)

    def is_shut(self, cluster: str) -> bool:
        """Tell whether *cluster* is no open mailbox; for accounts that have no other place."""
        known = self.state.clusters.get(cluster)
        return known is None or self.mailbox(cluster) is None or self.is_closed(known)

    def of_account(self, user: User) -> User:
        """Return *user* as an edge, if it is the ServiceAccount an edge had in earlier versions.

        It has the rights of an edge then and no others, whatever roles were bound to it.
        """
        mailbox = self.mailbox(user.home) if user.home else None
        if mailbox is None:
            return user
        account = account_name(self.sync_target(mailbox))
        if user.name != f"{ACCOUNT_PREFIX}{MAILBOX_NAMESPACE}:{account}":
            return user
        return User(user.name, user.uid, EDGE_GROUPS, user.extra, user.home)

    def admits(self, edge: EdgeName, issued: datetime) -> bool:
        """Tell whether *edge* gets in with a certificate of that time."""
        mailbox = self.mailbox(edge.mailbox)
        if mailbox is None or mailbox.uid != edge.uid or not self.sync_target(mailbox):
            return False
        revoked = self.revoked_at(edge.mailbox)
        return revoked is None or issued > revoked

    def revoked_at(self, cluster: str) -> datetime | None:
        """Return when the edge of *cluster* was last revoked; None when it never was."""
        known = self.state.clusters.get(cluster)
        if known is None or not known.revoked:
            return None
        try:
            return parse_rfc3339(known.revoked)
        except ValueError:
            return _ALWAYS  # somebody wrote something else, and meant a revocation

    def approves_by_itself(self, mailbox: Mailbox) -> bool:
        """Tell whether the inventory workspace lets its edges in without a person."""
        known = self.state.clusters.get(mailbox.cluster)
        return known is not None and known.edge_approval == AUTO_APPROVAL


def _read_scope(spec: bytes) -> Scope:
    """Return the scope of a stored spec; nothing, where it is not of its form."""
    try:
        return scope_of(orjson.loads(spec))
    except (AttributeError, KeyError, TypeError, ValueError):
        return NOTHING
