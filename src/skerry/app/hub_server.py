"""The engine with workspaces: what a hub is made of."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl

from skerry.api.edge import (
    AUTHORED_KINDS,
    CHANGED_BY,
    CONFIRM,
    EDGE_PLACEMENTS,
    SINGLE_PLACEMENT_SLICES,
    STATUS_QUERIES,
    is_inert,
)
from skerry.api.edge_identity import EXTENSION, REQUESTS_PATH
from skerry.api.kcp.resources import SYNC_TARGETS
from skerry.api.objects import Object
from skerry.app.api_server import ApiServer, Parts
from skerry.app.guard_admission import GuardAdmission
from skerry.app.guard_index import GuardedPlacements
from skerry.app.guard_objects import ObjectGuards, StoredType
from skerry.app.guard_requests import GuardedRequests
from skerry.app.restart import restart_on_unavailable
from skerry.app.rollout_admission import ROLLOUT_TYPE, ForcedRevisions
from skerry.logic.fleet.guards.book import REFUSAL as REMOVALS_REFUSAL
from skerry.logic.fleet.guards.book import book_entries
from skerry.logic.fleet.placement.slice_guard import REFUSAL as DESTINATIONS_REFUSAL
from skerry.logic.fleet.placement.slice_guard import destination_entries
from skerry.logic.fleet.query.plan import resources_read
from skerry.logic.machinery.admission.webhooks import MUTATING, VALIDATING
from skerry.logic.machinery.workspaces.limits import Limits
from skerry.logic.machinery.workspaces.names import WILDCARD
from skerry.logic.machinery.workspaces.stamp import ClusterStamp
from skerry.scheduler.placement import location_chooser
from skerry.server.admission.authorship import Authorship
from skerry.server.admission.certificates import TYPE as REQUESTS
from skerry.server.admission.certificates import CertificateRequests
from skerry.server.admission.definitions import DefinitionAdmission
from skerry.server.admission.edges import EdgeRestriction
from skerry.server.admission.namespaces import NamespaceLifecycle
from skerry.server.admission.operation import Admission, ByType, Chain
from skerry.server.admission.pod_security import PodSecurityAdmission
from skerry.server.admission.policy_rights import PolicyRights
from skerry.server.admission.policy_run import Surroundings
from skerry.server.admission.policy_status import PolicyStatus
from skerry.server.admission.quota import QuotaAdmission
from skerry.server.admission.reading import ReadingRights
from skerry.server.admission.token_secrets import TokenSecrets
from skerry.server.catalogue import CRD_PREFIX
from skerry.server.engine import Handlers
from skerry.server.http.message import Request
from skerry.server.request.call import Call
from skerry.server.rest.read import Reader
from skerry.server.security.authorization import RbacAuthorizer
from skerry.server.security.tokens import ServiceAccountTokens
from skerry.server.workspaces.account_tokens import AccountTokens, for_own_accounts
from skerry.server.workspaces.bootstrap import Bootstrap, tenancy_identity
from skerry.server.workspaces.bootstrap_credentials import BootstrapSecrets
from skerry.server.workspaces.catalogue import HubCatalogue
from skerry.server.workspaces.clusters import ClusterRules
from skerry.server.workspaces.compute import ComputeRules
from skerry.server.workspaces.edge_arrival import EdgeArrival
from skerry.server.workspaces.edge_certificates import EdgeIssuer
from skerry.server.workspaces.edge_marks import EdgeMarks
from skerry.server.workspaces.edge_requests import EdgeRequests, SignedRequests
from skerry.server.workspaces.exporter_entries import ExporterEntries, ExporterOnly
from skerry.server.workspaces.exports import BindingRules, ExportRules
from skerry.server.workspaces.genuine import Genuine
from skerry.server.workspaces.homes import Homes
from skerry.server.workspaces.mailboxes import Mailboxes
from skerry.server.workspaces.partition_sets import PartitionSets
from skerry.server.workspaces.reserved import ReservedMetadata
from skerry.server.workspaces.routing import HubRouter
from skerry.server.workspaces.schema_guard import SchemaGuard
from skerry.server.workspaces.schema_rules import SchemaRules
from skerry.server.workspaces.slices import SliceRules, Slices
from skerry.server.workspaces.streaming_list import StreamingLists
from skerry.server.workspaces.type_rules import TypeRules
from skerry.server.workspaces.upkeep import WorkspaceUpkeep
from skerry.server.workspaces.usage import LimitAnnotations, WorkspaceLimits, WorkspaceUsage
from skerry.server.workspaces.views import view_name
from skerry.server.workspaces.webhook_rules import WebhookWarnings
from skerry.server.workspaces.wildcard_requests import WildcardRequests, without_cluster
from skerry.server.workspaces.workspace_creation import WorkspaceInitializer

# Writes of these change what the hub serves and to whom; answers wait until it knows of them.
_AWAITED = frozenset(
    {
        ("tenancy.kcp.io", "workspaces"),
        ("tenancy.kcp.io", "workspacetypes"),
        ("core.kcp.io", "logicalclusters"),
        ("apis.kcp.io", "apiexports"),
        ("apis.kcp.io", "apibindings"),
        ("apis.kcp.io", "apiresourceschemas"),
        ("apis.kcp.io", "apiconversions"),
        SYNC_TARGETS.group_resource,
    }
)


_DESTINATIONS = ExporterOnly(
    SINGLE_PLACEMENT_SLICES.group_resource, destination_entries, DESTINATIONS_REFUSAL
)
_REMOVALS = ExporterOnly(
    EDGE_PLACEMENTS.group_resource, book_entries, REMOVALS_REFUSAL, lasting=True
)
# With what these hold back nothing else of a workspace goes: it is what they place.
_HOLDING = frozenset({EDGE_PLACEMENTS.group_resource})
_QUERIES = STATUS_QUERIES.group_resource
_TOKEN = ("", "serviceaccounts", "token")
# As long as a read waits for a revision that lies ahead.
_KNOWN_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class HubFacts:
    """What a hub must know besides the parts of any server."""

    base_url: str
    root_ca: Callable[[], str]
    tokens: ServiceAccountTokens
    # Without one, this hub signs no certificates.
    issuer: EdgeIssuer | None = None
    # How much a workspace, and a mailbox, may hold by default.
    workspace_limits: Limits = field(default_factory=Limits)
    mailbox_limits: Limits = field(default_factory=Limits)
    tree_limits: Limits = field(default_factory=Limits)


class HubServer(ApiServer):
    """An API server whose clusters are workspaces."""

    def __init__(
        self, parts: Parts, rbac: RbacAuthorizer, mailboxes: Mailboxes, facts: HubFacts
    ) -> None:
        state = self.state = mailboxes.state
        self.mailboxes = mailboxes
        self._facts = facts
        self._rbac = rbac
        self.usage = WorkspaceUsage(parts.store, state)
        self.guards = GuardedPlacements(state, parts.store, location_chooser)
        self._hub_catalogue = HubCatalogue(state)
        self._upkeep: WorkspaceUpkeep | None = None
        self.router = HubRouter(state, self._hub_catalogue, mailboxes.is_closed_cluster)
        self._parts = replace(
            parts,
            catalogue=self._hub_catalogue,
            router=self.router,
            stamp=ClusterStamp(),
            awaited=_AWAITED,
            before=self._until_known,
            # Tenants must not send the hub about in the network that it stands in.
            webhook_networks=parts.webhook_networks or (),
            webhook_services=False,
            offers={**parts.offers, **({EXTENSION: REQUESTS_PATH} if facts.issuer else {})},
        )
        super().__init__(self._parts)
        # Copies on their way to an edge limit nothing here.
        self.quotas.inert = is_inert
        for source in (self.policies, self.mutating_webhooks, self.validating_webhooks):
            source.ignore(is_inert)
        # Nothing of a workspace runs where the hub could reach it by a Service.
        self.mutating_webhooks.services = self.validating_webhooks.services = False
        state.cluster_gone = rbac.remove_cluster
        state.claims_changed = lambda *export: self.dispatcher.expire(view_name(*export))

    def _rules(self, parts: Parts) -> tuple[list[Admission], list[Admission]]:
        # Long, but one list: rules are asked in this order, which has to be seen as a whole.
        state, catalogue, clock, ids = self.state, self._hub_catalogue, parts.clock, parts.ids
        self.initializer = WorkspaceInitializer(
            state,
            catalogue,
            self.seeder,
            parts.authorizer,
            parts.store,
            clock,
            ids,
            base_url=self._base_url,
            root_ca=self._facts.root_ca,
        )
        self._clusters = ClusterRules(parts.store, clock)
        self._slices = Slices(state, catalogue, parts.store, self._base_url)
        own: list[Admission] = [
            EdgeRestriction(self.mailboxes, clock),
            ByType(self._edge_rules(parts)),
            Genuine(
                state,
                [
                    ReservedMetadata(),
                    self.initializer,
                    self._clusters,
                    TypeRules(state, clock, self._base_url),
                ],
            ),
            AccountTokens(
                TokenSecrets(parts.store, self._facts.tokens, self._facts.root_ca, is_inert),
                catalogue,
                self.seeder,
                ids,
                lambda cluster: self.mailboxes.mailbox(cluster) is not None,
            ),
            SchemaRules(state, parts.offload),
            ExportRules(
                state,
                catalogue,
                self.seeder,
                parts.store,
                clock,
                ids,
                base_url=self._base_url,
                namespaces=self.namespaces.within,
            ),
            SliceRules(self._slices, parts.authorizer, clock),
            BindingRules(state, catalogue, parts.authorizer, clock),
            ComputeRules(state, catalogue, self.seeder, parts.store, clock, ids, self._base_url),
        ]
        requests = GuardedRequests(self.guards, parts.store, clock)
        return [NamespaceLifecycle(parts.store, self.namespaces)], [
            SchemaGuard(own),
            DefinitionAdmission(catalogue, clock),
            PolicyRights(parts.authorizer, parts.store),
            PolicyStatus(parts.offload),
            *parts.admission,
            Authorship(
                CHANGED_BY,
                AUTHORED_KINDS,
                ids,
                lambda cluster: self.mailboxes.mailbox(cluster) is not None,
                (CONFIRM,),
            ),
            PodSecurityAdmission(
                parts.store, self.namespaces, parts.pod_security, self._passes_through
            ),
            GuardAdmission(requests),
            ObjectGuards(requests, self.namespaces.within, self._namespaced_types),
            QuotaAdmission(parts.store, self.quotas, clock, cluster_quotas=True),
            WorkspaceLimits(
                self.usage,
                self.mailboxes,
                self._facts.workspace_limits,
                self._facts.mailbox_limits,
                self._facts.tree_limits,
            ),
        ]

    def _namespaced_types(self, cluster: str) -> Iterator[StoredType]:
        for each in self._hub_catalogue.types(cluster).stored:
            if each.info.namespaced:
                yield StoredType(each.info.group, each.info.resource, each.storage_resource)

    def _policy_surroundings(self, parts: Parts) -> Surroundings:
        return replace(
            super()._policy_surroundings(parts),
            inert=self._passes_through,
            exporter=self._exporter,
        )

    def _exporter(self, call: Call) -> str:
        """Return the cluster whose export the type of a request is bound from."""
        info = call.resource.info
        bound = self.state.by_identity.get((info.group, info.resource, call.resource.identity))
        return "" if bound is None else bound.schema_cluster

    def _passes_through(self, cluster: str, obj: Mapping[str, Any]) -> bool:
        """Tell whether *obj* is inert in *cluster*: in a mailbox, where alone copies are.

        Elsewhere anybody may label their own objects as copies, and they are still the source of
        what goes to edges.
        """
        return is_inert(obj) and self.mailboxes.mailbox(cluster) is not None

    def _edge_rules(self, parts: Parts) -> dict[tuple[str, str], Admission]:
        """Return the rules that each concern one type: who reaches which edge, for the most."""
        known = (self.mailboxes, parts.authorizer, parts.store, parts.clock)
        return {
            REQUESTS: self._certificate_rules(parts),
            ("", "secrets"): BootstrapSecrets(*known),
            ("core.kcp.io", "logicalclusters"): Chain([LimitAnnotations(), EdgeMarks(*known)]),
            ("coordination.k8s.io", "leases"): EdgeArrival(self.mailboxes, parts.store),
            _DESTINATIONS.kind: ExporterEntries(_DESTINATIONS, self.state),
            _REMOVALS.kind: ExporterEntries(_REMOVALS, self.state),
            ROLLOUT_TYPE: ForcedRevisions(parts.store),
            _QUERIES: ReadingRights(_QUERIES, resources_read, parts.authorizer),
            **dict.fromkeys(
                (MUTATING, VALIDATING), WebhookWarnings(called=bool(parts.webhook_networks))
            ),
        }

    def _certificate_rules(self, parts: Parts) -> Admission:
        plain = CertificateRequests(parts.authorizer, parts.clock)
        issuer = self._facts.issuer
        if issuer is None:
            return plain
        signer = EdgeRequests(self.mailboxes, issuer, parts.authorizer, parts.store, parts.clock)
        return SignedRequests(signer, plain)

    async def _until_known(self, request: Request) -> None:
        """Wait for a workspace another hub has just made, if the request says it has seen it.

        A client that names the revision it learned of a workspace by may go there through any
        hub at once.
        """
        if not request.path.startswith("/clusters/") or "resourceVersion=" not in (
            request.query_string
        ):
            return
        segment = request.path.split("/", 3)[2]
        if self.state.resolve(segment) in self.state.clusters or segment == WILDCARD:
            return
        version = dict(parse_qsl(request.query_string)).get("resourceVersion", "")
        if version.isdigit() and int(version) > self.dispatcher.position:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_KNOWN_SECONDS):
                    await self.dispatcher.reached(int(version))

    def _base_url(self) -> str:
        return self._facts.base_url

    def _handlers(self, parts: Parts) -> Handlers:
        handlers = super()._handlers(parts)
        homes = Homes(
            parts.store,
            self.dispatcher,
            self.state,
            self.initializer,
            parts.authorizer,
            parts.clock,
        )
        wildcard = WildcardRequests(self.state)
        streaming_lists = StreamingLists(
            parts.store, Reader(parts.store, self.dispatcher, parts.clock.now)
        )
        verbs = {
            **handlers.verbs,
            "get": homes.before(handlers.verbs["get"]),
            "list": streaming_lists.before(handlers.verbs["list"]),
        }
        subresources = dict(handlers.subresources)
        if _TOKEN in subresources:
            subresources[_TOKEN] = for_own_accounts(subresources[_TOKEN], parts.store)
        return replace(
            handlers,
            verbs=wildcard.guarded(verbs),
            subresources=wildcard.guarded(subresources),
            common_subresources=wildcard.guarded(handlers.common_subresources),
            paths={path: without_cluster(each) for path, each in handlers.paths.items()},
            trees={path: without_cluster(each) for path, each in handlers.trees.items()},
        )

    async def prepare(self, also: Sequence[Object] = ()) -> None:
        """Make sure root exists and learn what is there; then the hub can serve."""
        parts = self._parts
        bootstrap = Bootstrap(
            parts.store, self.seeder, parts.clock, parts.ids, self._facts.base_url
        )
        await bootstrap.ensure_root()
        identity = await tenancy_identity(parts.store)
        self._clusters.workspaces = f"workspaces:{identity}"
        self.dispatcher.observe(CRD_PREFIX, self.catalogue.observe, self.catalogue.reset)
        await self.dispatcher.start()
        await self.catalogue.load(parts.store)
        await self.state.follow(parts.store, self.dispatcher, identity)
        await self.mailboxes.follow(parts.store, self.dispatcher)
        await self.guards.follow(self.dispatcher)
        self.usage.follow(self.dispatcher)
        for observed in self._observed:
            await observed.follow(parts.store, self.dispatcher)
        self._upkeep = WorkspaceUpkeep(
            parts.store,
            self.dispatcher,
            self.state,
            self._hub_catalogue,
            parts.clock,
            self._slices,
            PartitionSets(
                self.state, self._hub_catalogue, parts.store, self.seeder, parts.clock, parts.ids
            ),
            identity,
            holding=_HOLDING,
        )

    async def run(self) -> None:
        """Keep everything going until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(super().run())
            tasks.create_task(restart_on_unavailable("usage", self.usage.run, self._clock))
            tasks.create_task(restart_on_unavailable("guards", self.guards.run, self._clock))
            if self._upkeep is not None:
                tasks.create_task(
                    restart_on_unavailable("workspaces", self._upkeep.run, self._clock)
                )
