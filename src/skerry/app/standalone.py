"""A plain API server as a process: port, certificates, kubeconfig, signals."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import uvloop

from skerry.app.api_server import ApiServer, Parts
from skerry.app.core_controllers import run_core_controllers
from skerry.app.observability import Observability, build_observability
from skerry.app.security import Security, build_security, follow_rbac
from skerry.app.settings import ServerSettings
from skerry.app.version import VERSION
from skerry.kit import log as logging
from skerry.kit.clock import Clock, SystemClock
from skerry.kit.ids import IdSource, SystemIds
from skerry.kit.log import Logger
from skerry.logic.rbac.bootstrap import bootstrap_objects
from skerry.server.admission.rbac import EscalationGuard
from skerry.server.codec import dump
from skerry.server.engine import PathHandler
from skerry.server.expiry import EventExpiry
from skerry.server.http.message import Answer, Request, Response
from skerry.server.http.server import HttpServer
from skerry.server.http.settings import HttpSettings
from skerry.server.http.tls import server_context
from skerry.server.security.encryption import EncryptedStore, Keys
from skerry.server.security.kubeconfig import (
    ClusterEntry,
    ContextEntry,
    UserEntry,
    write_kubeconfig,
)
from skerry.server.security.pki import Pki, open_pki, server_names
from skerry.server.subresources.reviews import AccessReviews, whoami
from skerry.server.subresources.tokens import TokenHandler, TokenReviews
from skerry.store import compaction
from skerry.store.base import Store, StoreError
from skerry.store.compaction import CompactionPolicy
from skerry.store.open import open_store

log = Logger("server")


class StartError(Exception):
    """Why the server did not start, in a sentence."""


@dataclass(slots=True)
class Running:
    """A server that answers requests."""

    url: str
    kubeconfig: Path
    api: ApiServer
    http: HttpServer


def run_server(settings: ServerSettings, announce: Callable[[str], None]) -> None:
    """Run a plain server until SIGTERM or SIGINT; *announce* gets the line that says ready."""
    logging.configure(verbosity=settings.verbosity, format=settings.log_format)
    uvloop.run(_until_stopped(settings, announce))


async def _until_stopped(settings: ServerSettings, announce: Callable[[str], None]) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    async with serving(settings) as server:
        announce(f"skerry serve ready at {server.url} (kubeconfig {server.kubeconfig})")
        await stopped.wait()
        log.info("stopping", v=0)


@contextlib.asynccontextmanager
async def serving(settings: ServerSettings) -> AsyncIterator[Running]:
    """Serve inside the context; leaving it drains and closes everything."""
    clock, ids = SystemClock(), SystemIds()
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        store: Store = await open_store(settings.store, clock, ids)
    except (StoreError, OSError) as error:
        raise StartError(f"cannot open the store: {error}") from error
    try:
        if settings.encryption_key_file is not None:
            keys = Keys(settings.encryption_key_file.read_text(), ids)
            store = EncryptedStore(store, keys)
        async with _serving_store(settings, store, clock, ids) as running:
            yield running
    finally:
        await store.close()


@contextlib.asynccontextmanager
async def _serving_store(
    settings: ServerSettings, store: Store, clock: Clock, ids: IdSource
) -> AsyncIterator[Running]:
    keys = settings.data_dir / "pki"
    host = settings.external_hostname or _reachable(settings.bind_address)
    pki = open_pki(keys, server_names((host, *settings.tls_sans)), clock)
    security = build_security(settings, keys, store, clock, ids)
    observability = build_observability(settings, store, clock, ids)
    api = ApiServer(_parts(settings, store, clock, ids, security, observability))
    await api.prepare(bootstrap_objects())
    await follow_rbac(security.authorizer, store, api.dispatcher)
    http = HttpServer(api.engine.handle, HttpSettings(body_bytes=settings.max_body_bytes))
    async with asyncio.TaskGroup() as tasks:
        background = [
            tasks.create_task(api.run()),
            tasks.create_task(compaction.run(store, _policy(settings), clock)),
            tasks.create_task(
                EventExpiry(store, clock, timedelta(minutes=settings.event_minutes)).run()
            ),
        ]
        if settings.controllers:
            background.append(tasks.create_task(run_core_controllers(api, pki, clock, ids)))
        try:
            port = await _listen(http, settings, server_context(pki))
            url = f"https://{host}:{port}"
            kubeconfig = settings.data_dir / "admin.kubeconfig"
            _write_admin_kubeconfig(kubeconfig, url, pki)
            observability.health.started()
            # What was loaded to start is not garbage and need not be looked at again.
            gc.freeze()
            yield Running(url, kubeconfig, api, http)
        finally:
            observability.health.stopping()
            await http.stop(settings.drain_seconds)
            for task in background:
                task.cancel()
            observability.close()


def _parts(
    settings: ServerSettings,
    store: Store,
    clock: Clock,
    ids: IdSource,
    security: Security,
    observability: Observability,
) -> Parts:
    reviews = AccessReviews(security.authorizer)
    documents = security.tokens
    return Parts(
        store=store,
        clock=clock,
        ids=ids,
        authenticator=security.authentication,
        authorizer=security.authorizer,
        flow=observability.flow,
        recorder=observability.recorder,
        paths={
            **observability.paths,
            "/version": _fixed(VERSION),
            "/.well-known/openid-configuration": _made(documents.openid_configuration),
            "/openid/v1/jwks": _made(documents.jwks),
        },
        trees=observability.trees,
        virtual={
            ("authorization.k8s.io", "subjectaccessreviews"): reviews.subject,
            ("authorization.k8s.io", "localsubjectaccessreviews"): reviews.local_subject,
            ("authorization.k8s.io", "selfsubjectaccessreviews"): reviews.myself,
            ("authorization.k8s.io", "selfsubjectrulesreviews"): reviews.my_rules,
            ("authentication.k8s.io", "selfsubjectreviews"): whoami,
            ("authentication.k8s.io", "tokenreviews"): TokenReviews(security.authentication).handle,
        },
        subresources={
            ("", "serviceaccounts", "token"): TokenHandler(store, security.tokens).handle
        },
        admission=(EscalationGuard(security.authorizer),),
        service_network=settings.service_network,
    )


def _policy(settings: ServerSettings) -> CompactionPolicy:
    return CompactionPolicy(
        keep=timedelta(minutes=settings.compaction_minutes),
        most_revisions=settings.compaction_revisions,
    )


async def _listen(http: HttpServer, settings: ServerSettings, tls: ssl.SSLContext) -> int:
    try:
        return await http.start(settings.bind_address, settings.port, tls=tls)
    except OSError as error:
        where = f"{settings.bind_address}:{settings.port}"
        raise StartError(f"cannot listen on {where}: {error.strerror or error}") from error


def _write_admin_kubeconfig(path: Path, url: str, pki: Pki) -> None:
    write_kubeconfig(
        path,
        [ClusterEntry("skerry", url, pki.ca.certificate)],
        [UserEntry("admin", pki.admin)],
        [ContextEntry("skerry", "skerry", "admin")],
        "skerry",
    )


def _reachable(address: str) -> str:
    """Return an address clients on this machine can use for a server bound to *address*."""
    return "127.0.0.1" if address in ("0.0.0.0", "::", "") else address  # noqa: S104 - compared


def _fixed(document: dict[str, str]) -> PathHandler:
    body = dump(document, pretty=True)

    async def answer(_: Request, __: str) -> Answer:
        return Response(body=body)

    return answer


def _made(make: Callable[[], dict[str, Any]]) -> PathHandler:
    async def answer(_: Request, __: str) -> Answer:
        return Response(body=dump(make()))

    return answer
