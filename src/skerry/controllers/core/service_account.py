"""Gives every namespace its ``default`` ServiceAccount, without which no pod can be made.

Reads Namespaces and the ServiceAccounts called ``default``. Writes that ServiceAccount where it
is missing; what people put into an existing one is theirs.

Invariant: an active namespace has a ServiceAccount ``default``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.logic.machinery.plan import NOTHING, Create, Plan, Target
from skerry.runtime.client import Selection
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.index import Key, key_of
from skerry.runtime.informer import Handler, enqueue_present, without_managed_fields
from skerry.runtime.workqueue import WorkQueue

NAME = "serviceaccount-controller"
NAMESPACES = GroupVersionResource("", "v1", "namespaces")
SERVICE_ACCOUNTS = GroupVersionResource("", "v1", "serviceaccounts")
DEFAULT_NAME = "default"
ONLY_DEFAULTS = Selection(fields=f"metadata.name={DEFAULT_NAME}", metadata_only=True)

# -- events -----------------------------------------------------------------------------------


def enqueue_on_loss(add: Callable[[Key], None]) -> Handler:
    """Return the handler that adds the namespace of an object that is gone."""

    def handle(old: Object | None, new: Object | None) -> None:
        if new is None and old is not None:
            gone = key_of(old)
            add(Key(gone.cluster, "", gone.namespace))

    return handle


# -- observe ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Observed:
    """An active namespace."""

    key: Key
    present: bool


# -- decide -----------------------------------------------------------------------------------


def decide(observed: Observed) -> Plan:
    """Give an active namespace its ServiceAccount."""
    if observed.present:
        return NOTHING
    key = observed.key
    wanted = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": DEFAULT_NAME, "namespace": key.name},
    }
    target = Target(SERVICE_ACCOUNTS, DEFAULT_NAME, key.name, key.cluster)
    return Plan([Create(target, wanted, reason="NamespaceActive")])


# -- controller -------------------------------------------------------------------------------


def build(context: ControllerContext) -> Controller[Key, Observed]:
    """Return the controller that keeps default ServiceAccounts."""
    namespaces = context.factory.informer(NAMESPACES, transform=without_managed_fields, packed=True)
    accounts = context.factory.informer(
        SERVICE_ACCOUNTS, ONLY_DEFAULTS, transform=without_managed_fields, packed=True
    )
    queue: WorkQueue[Key] = context.queue(NAME)
    namespaces.add_handler(enqueue_present(queue.add))
    accounts.add_handler(enqueue_on_loss(queue.add))

    async def observe(key: Key) -> Observed | None:
        namespace = namespaces.index.get(key)
        if namespace is None or namespace["metadata"].get("deletionTimestamp"):
            return None
        return Observed(key, Key(key.cluster, key.name, DEFAULT_NAME) in accounts.index)

    reconciler = Reconciler(observe, decide, context.executor(NAME))
    return context.controller(NAME, reconciler, queue, [namespaces, accounts])
