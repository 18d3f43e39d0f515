"""An API server put together from its parts.

``ApiServer`` is the engine without a socket: store, dispatcher, catalogue, rules. ``serve`` (in
``standalone``) gives it a port, certificates and controllers; tests and the simulation use it as
it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from skerry.api.keys import PLAIN
from skerry.api.objects import Object
from skerry.app.restart import restart_on_unavailable
from skerry.app.webhook_client import HttpWebhookClient, Network
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.kit.metrics import Counter
from skerry.logic.machinery.admission.webhooks import MUTATING, VALIDATING
from skerry.logic.machinery.flow_schemas import GROUP as FLOW_GROUP
from skerry.logic.machinery.flow_schemas import LEVELS as FLOW_LEVELS
from skerry.logic.machinery.flow_schemas import SCHEMAS as FLOW_SCHEMAS
from skerry.logic.machinery.pod_security.configuration import PodSecurityConfiguration
from skerry.server.access import Authenticator, Authorizer, Flow
from skerry.server.admission.certificates import CertificateRequests
from skerry.server.admission.definitions import DefinitionAdmission
from skerry.server.admission.limits import LimitRanger
from skerry.server.admission.namespaces import NamespaceLifecycle
from skerry.server.admission.nodes import NodeRestriction, TaintNewNodes
from skerry.server.admission.operation import Admission, Chain, Validation, Validations
from skerry.server.admission.pod_security import PodSecurityAdmission
from skerry.server.admission.pods import (
    DefaultTolerations,
    PriorityAdmission,
    ServiceAccountAdmission,
)
from skerry.server.admission.policies import BINDINGS as POLICY_BINDINGS
from skerry.server.admission.policies import POLICIES, PolicyAdmission, PolicySource
from skerry.server.admission.policy_rights import PolicyRights
from skerry.server.admission.policy_run import Surroundings
from skerry.server.admission.policy_status import PolicyStatus
from skerry.server.admission.quota import QuotaAdmission
from skerry.server.admission.requests import RequestJudge
from skerry.server.admission.services import ServiceAllocation
from skerry.server.admission.storage import DefaultStorageClass, StorageProtection
from skerry.server.admission.webhook_calls import WebhookCalls
from skerry.server.admission.webhook_metrics import WebhookMetrics
from skerry.server.admission.webhooks import (
    MutatingWebhooks,
    ValidatingWebhooks,
    WebhookSource,
)
from skerry.server.aggregation.apis import TYPE as API_SERVICES
from skerry.server.aggregation.apis import AggregatedApis
from skerry.server.atomic_batch import AtomicBatches
from skerry.server.batch import Batches
from skerry.server.catalogue import CRD_GROUP, CRD_PREFIX, CRD_RESOURCE, Catalogue, builtin_types
from skerry.server.conversion import Conversions
from skerry.server.definition_cleanup import DefinitionCleanup
from skerry.server.engine import (
    Engine,
    Handlers,
    PathHandler,
    Recorder,
    ResourceHandler,
    Router,
)
from skerry.server.extensions import ExtensionHandler, extension_handlers
from skerry.server.http.message import Answer, Request
from skerry.server.multiplex.watches import MultiplexedWatches
from skerry.server.observed import ObservedObjects
from skerry.server.offload.offload import Offload
from skerry.server.preparation.pipeline import NoStamp, Preparation, Stamp
from skerry.server.request.call import Call
from skerry.server.rest.delete import Deleter
from skerry.server.rest.patching import Patcher
from skerry.server.rest.read import Reader
from skerry.server.rest.watching import Watcher
from skerry.server.rest.write import Writer
from skerry.server.seeding import Seeder, plain_objects
from skerry.server.subresources.connections import NodeConnections
from skerry.server.subresources.eviction import EvictionHandler
from skerry.server.subresources.pods import BindingHandler, FinalizeHandler
from skerry.server.subresources.scale import ScaleHandler
from skerry.server.watch.dispatcher import Dispatcher
from skerry.server.watch.shared_revisions import ALONE, Acknowledged
from skerry.store.base import Store

_RBAC = "rbac.authorization.k8s.io"
# Writes of these change what the server itself does; the answer waits until it knows of them.
_AWAITED = frozenset(
    {
        (CRD_GROUP, CRD_RESOURCE),
        ("", "namespaces"),
        ("", "resourcequotas"),
        ("", "limitranges"),
        ("scheduling.k8s.io", "priorityclasses"),
        ("storage.k8s.io", "storageclasses"),
        API_SERVICES,
        (FLOW_GROUP, FLOW_SCHEMAS),
        (FLOW_GROUP, FLOW_LEVELS),
        POLICIES,
        POLICY_BINDINGS,
        MUTATING,
        VALIDATING,
        (_RBAC, "roles"),
        (_RBAC, "rolebindings"),
        (_RBAC, "clusterroles"),
        (_RBAC, "clusterrolebindings"),
    }
)
# Kubernetes' name of the rule that needs somebody beside the server who watches nodes.
TAINT_NODES = "TaintNodesByCondition"
# Rules that can be left out, by Kubernetes' names; the others keep the server's own data right.
DISABLEABLE: Mapping[str, type] = {
    "ServiceAccount": ServiceAccountAdmission,
    "Priority": PriorityAdmission,
    "DefaultTolerationSeconds": DefaultTolerations,
    "NodeRestriction": NodeRestriction,
    TAINT_NODES: TaintNewNodes,
    "DefaultStorageClass": DefaultStorageClass,
    "StorageObjectInUseProtection": StorageProtection,
    "LimitRanger": LimitRanger,
    "PodSecurity": PodSecurityAdmission,
    "ResourceQuota": QuotaAdmission,
    "MutatingAdmissionWebhook": MutatingWebhooks,
    "ValidatingAdmissionPolicy": PolicyAdmission,
    "ValidatingAdmissionWebhook": ValidatingWebhooks,
}
_CONNECTED = ("exec", "attach", "portforward", "proxy")


@dataclass(slots=True)
class Parts:
    """What an API server is made with from outside."""

    store: Store
    clock: Clock
    ids: IdSource
    authenticator: Authenticator
    authorizer: Authorizer
    flow: Flow
    recorder: Recorder
    paths: Mapping[str, PathHandler] = field(default_factory=dict)
    trees: Mapping[str, PathHandler] = field(default_factory=dict)
    virtual: Mapping[tuple[str, str], ResourceHandler] = field(default_factory=dict)
    subresources: Mapping[tuple[str, str, str], ResourceHandler] = field(default_factory=dict)
    admission: tuple[Admission, ...] = ()
    # What is offered beyond Kubernetes by the server as a whole.
    extensions: Mapping[str, ExtensionHandler] = field(default_factory=dict)
    # Rules that are left out, by Kubernetes' names.
    disabled_admission: frozenset[str] = frozenset()
    service_network: str = "10.96.0.0/16"
    # Extensions that are offered besides those of every server: name and path.
    offers: Mapping[str, str] = field(default_factory=dict)
    pod_security: PodSecurityConfiguration = field(default_factory=PodSecurityConfiguration)
    # What a hub brings of its own.
    catalogue: Catalogue | None = None
    router: Router | None = None
    stamp: Stamp = field(default_factory=NoStamp)
    awaited: frozenset[tuple[str, str]] = frozenset()
    before: Callable[[Request], Awaitable[None]] | None = None
    # What the processes of a group have answered for.
    acknowledged: Acknowledged = ALONE
    # Who does what would keep the loop; by default, the loop does everything.
    offload: Offload = field(default_factory=Offload)
    # Where webhooks may be; None is anywhere.
    webhook_networks: Sequence[Network] | None = None
    # Whether Services lead anywhere from here.
    webhook_services: bool = True
    webhook_metrics: WebhookMetrics | None = None
    cache_lists: Counter | None = None
    # Who serves other group versions in this server's name; nobody does in workspaces.
    aggregated: AggregatedApis | None = None
    # Whether pods run here. Where objects only pass through, nobody looks after claims and nodes.
    runs_pods: bool = False


class ApiServer:
    """The engine and what keeps it going."""

    def __init__(self, parts: Parts) -> None:
        store = parts.store
        self.store = store
        self._clock = parts.clock
        self.dispatcher = Dispatcher(store, acknowledged=parts.acknowledged)
        self.catalogue = parts.catalogue or Catalogue(builtin_types())
        self.seeder = Seeder(store, parts.clock, parts.ids, parts.stamp)
        self.namespaces = ObservedObjects("", "namespaces")
        self.priority_classes = ObservedObjects("scheduling.k8s.io", "priorityclasses")
        # Where logs, exec and their like go; node agents register here.
        self.connections = NodeConnections(store)
        self._cleanup = DefinitionCleanup(store, self.dispatcher, parts.clock)
        self.limit_ranges = ObservedObjects("", "limitranges")
        self.quotas = ObservedObjects("", "resourcequotas")
        self.storage_classes = ObservedObjects("storage.k8s.io", "storageclasses")
        self.policies = PolicySource()
        self.mutating_webhooks = WebhookSource(*MUTATING)
        self.validating_webhooks = WebhookSource(*VALIDATING)
        self._webhook_client = HttpWebhookClient(
            store, parts.webhook_networks, services=parts.webhook_services
        )
        self._observed = (
            self.policies,
            self.mutating_webhooks,
            self.validating_webhooks,
            self.namespaces,
            self.priority_classes,
            self.limit_ranges,
            self.quotas,
            self.storage_classes,
            *((parts.aggregated.services,) if parts.aggregated is not None else ()),
        )
        self._offload = parts.offload
        self.engine = self._engine(parts)

    def _engine(self, parts: Parts) -> Engine:
        return Engine(
            self.catalogue,
            self._handlers(parts),
            parts.authenticator,
            parts.authorizer,
            parts.flow,
            parts.recorder,
            router=parts.router,
            before=self._before(parts),
            now=parts.clock.now,
            identity=parts.store.identity,
            offload=parts.offload,
            conversions=Conversions(self._webhook_client, parts.ids),
        )

    def _before(self, parts: Parts) -> Callable[[Request], Awaitable[None]] | None:
        """Return what is waited for before a request can find its way."""
        if parts.acknowledged is ALONE:
            return parts.before
        catch_up, before = self.dispatcher.catch_up, parts.before

        async def known(request: Request) -> None:
            await catch_up()
            if before is not None:
                await before(request)

        return known

    def _handlers(self, parts: Parts) -> Handlers:
        store, clock, ids = parts.store, parts.clock, parts.ids
        admission, validation = self._admission(parts)
        reader = Reader(store, self.dispatcher, clock.now, parts.offload, parts.cache_lists)
        awaited = _AWAITED | parts.awaited
        writer = Writer(
            store,
            self.dispatcher,
            reader,
            admission,
            clock,
            ids,
            preparation=Preparation(parts.stamp),
            awaited=awaited,
            offload=parts.offload,
            validation=validation,
        )
        deleter = Deleter(
            store, self.dispatcher, reader, admission, clock, awaited, validation=validation
        )
        watcher = Watcher(self.dispatcher, reader, ids)
        patcher = Patcher(store, writer)
        judge = RequestJudge(self._mutating, validation)
        binding = BindingHandler(writer, clock, judge)
        return Handlers(
            verbs={
                "get": reader.get,
                "list": reader.list,
                "watch": watcher.watch,
                "create": writer.create,
                "update": writer.update,
                "patch": patcher.patch,
                "delete": deleter.delete,
                "deletecollection": deleter.collection,
            },
            subresources={
                ("", "pods", "binding"): binding.handle,
                ("", "pods", "eviction"): EvictionHandler(store, deleter, clock, judge).handle,
                ("", "namespaces", "finalize"): FinalizeHandler(writer).handle,
                **self._connected(judge),
                **parts.subresources,
            },
            common_subresources={"scale": ScaleHandler(store, writer).handle},
            virtual={("", "bindings"): binding.collection, **parts.virtual},
            paths=parts.paths,
            trees=parts.trees,
            aggregated=parts.aggregated,
            extensions={
                **extension_handlers(
                    MultiplexedWatches(
                        self.dispatcher, reader, parts.authorizer, ids, lambda: store.identity
                    ).handle,
                    Batches(self._handled, clock).handle,
                    AtomicBatches(self._handled, store, clock).handle,
                    parts.offers,
                ),
                **parts.extensions,
            },
        )

    def _admission(self, parts: Parts) -> tuple[Admission, Validation]:
        """Return the server's own rules, with mutating webhooks among them, and the clients'."""
        around = self._policy_surroundings(parts)
        calls = WebhookCalls(
            self._webhook_client, around, parts.ids, parts.stamp, parts.webhook_metrics
        )
        left_out = tuple(DISABLEABLE[name] for name in parts.disabled_admission)
        first, others = (
            [rule for rule in rules if not isinstance(rule, left_out)]
            for rules in self._rules(parts)
        )
        # What clients configure stays data where the rule that reads it is left out.
        mutated, validated, judged = self.mutating_webhooks, self.validating_webhooks, self.policies
        if MutatingWebhooks in left_out:
            mutated = WebhookSource(*MUTATING)
        if ValidatingWebhooks in left_out:
            validated = WebhookSource(*VALIDATING)
        if PolicyAdmission in left_out:
            judged = PolicySource()
        mutating = self._mutating = MutatingWebhooks(mutated, calls, Chain(first))
        self.admission_rules = (*first, mutating, *others)
        return Chain(self.admission_rules), Validations(
            mutating, PolicyAdmission(judged, around), ValidatingWebhooks(validated, calls)
        )

    async def _handled(self, request: Request) -> Answer:
        return await self.engine.handle(request)

    def _connected(self, judge: RequestJudge) -> dict[tuple[str, str, str], ResourceHandler]:
        """Return the handlers of what ends at a node; logs are read, the rest is connected to."""
        connections = self.connections

        def judged(handler: ResourceHandler) -> ResourceHandler:
            async def handle(call: Call) -> Answer:
                return await handler(await judge.connect(call))

            return handle

        return {
            ("", "pods", "log"): connections.pod,
            **{("", "pods", name): judged(connections.pod) for name in _CONNECTED},
            ("", "nodes", "proxy"): judged(connections.node),
            ("", "services", "proxy"): judged(connections.service),
        }

    def _policy_surroundings(self, parts: Parts) -> Surroundings:
        """Return what policies look at beside a request."""
        return Surroundings(
            parts.store, self.catalogue, self.namespaces, parts.authorizer, parts.offload
        )

    def _rules(self, parts: Parts) -> tuple[list[Admission], list[Admission]]:
        """Return the rules that go before mutating webhooks, and those that come after."""
        store = parts.store
        cluster = (
            NodeRestriction(store),
            TaintNewNodes(),
            DefaultStorageClass(self.storage_classes),
            StorageProtection(),
        )
        return [
            NamespaceLifecycle(store, self.namespaces),
            ServiceAccountAdmission(store),
            PriorityAdmission(self.priority_classes, store),
            DefaultTolerations(),
            *(cluster if parts.runs_pods else ()),
            LimitRanger(self.limit_ranges),
        ], [
            ServiceAllocation(store, parts.service_network),
            DefinitionAdmission(self.catalogue, parts.clock),
            PolicyRights(parts.authorizer, store),
            PolicyStatus(parts.offload),
            CertificateRequests(parts.authorizer, parts.clock),
            *parts.admission,
            PodSecurityAdmission(store, self.namespaces, parts.pod_security),
            # Last, so that only what all others let through is charged.
            QuotaAdmission(store, self.quotas, parts.clock),
        ]

    async def prepare(self, also: Sequence[Object] = ()) -> None:
        """Write what every cluster has and read what the server must know; then it can serve."""
        objects = [*plain_objects(), *also]
        await self.seeder.ensure(self.catalogue.types(PLAIN), PLAIN, objects)
        self.dispatcher.observe(CRD_PREFIX, self.catalogue.observe, self.catalogue.reset)
        await self.dispatcher.start()
        await self.catalogue.load(self.store)
        for observed in self._observed:
            await observed.follow(self.store, self.dispatcher)

    async def run(self) -> None:
        """Keep dispatching and cleaning up until cancelled."""
        cleanup = restart_on_unavailable("definitions", self._cleanup.run, self._clock)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.dispatcher.run())
                tasks.create_task(self.dispatcher.look_back())
                tasks.create_task(self._offload.serve())
                tasks.create_task(cleanup)
        finally:
            await self._webhook_client.close()
