"""Keeps one mailbox workspace per SyncTarget, and passes on that its edge lives and how it stands.

Reads SyncTargets in the view of root's export ``workload.kcp.io``, the Workspaces of the provider
workspace, the APIBindings to the provider's export ``edge.kcp.io``, the SyncerConfigs in its view,
and the heartbeat Leases of all mailboxes. Writes Workspaces ``<cluster>-mb-<UID>``, their
annotation, their APIBinding ``bind-edge``, and of SyncTargets ``status.lastSyncerHeartbeatTime``,
``objects``, ``syncerVersion`` and the conditions ``Held`` and ``ObjectsRefused``.

Invariants: a mailbox that is missing, unbound or unmarked is repaired at once. A workspace is
deleted only if its name is a mailbox's (a logical cluster, ``-mb-`` and a UUID), its SyncTarget
is in no cache and, asked again, not on the server, and then only as it was seen (by UID). No
other workspace is ever written to.

Three loops over shared caches (``controller``), because they differ in urgency. The mailboxes
themselves: ``events``, ``observe``, ``decide``, ``logging_executor``. ``relay`` passes heartbeats
on, ``standing`` what is held and refused; each of these is small, and one file.

The way of a mailbox. Each line is decided from what is there, so a process may die after any of
them, and an event may be missed, without a difference to what comes next:

    there is                                  written
    a SyncTarget                              its Workspace, marked with the SyncTarget's name
    that Workspace, without a logical cluster nothing: that it gets one is an event
    one whose mark somebody took off          the mark
    a logical cluster, and no binding in it   the APIBinding
    a binding to another export               its deletion; the right one in the next round
    a Workspace, and no SyncTarget            its deletion, when the server has confirmed that
"""
