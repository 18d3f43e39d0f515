"""The signers of a plain server, run beside it."""

from __future__ import annotations

import asyncio

from skerry.app.api_server import ApiServer
from skerry.app.core_controllers import embedded_transport
from skerry.controllers.core import certificates
from skerry.controllers.core.certificates import Signing
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.runtime.client import Client
from skerry.runtime.context import ControllerContext
from skerry.runtime.informer import InformerFactory
from skerry.server.security.certificate_signing import CertificateSigning
from skerry.server.security.signing_rotation import Authorities


async def run_certificates(
    api: ApiServer, authorities: Authorities, clock: Clock, ids: IdSource
) -> None:
    """Sign approved requests with the server's authority until cancelled."""
    client = Client(embedded_transport(api), user_agent="skerry/certificates", clock=clock)
    factory = InformerFactory(client, ids=ids)
    signing = CertificateSigning(lambda: authorities.authority)
    context = ControllerContext(client=client, factory=factory, ids=ids)
    controller = certificates.build(context, Signing(signing.subject, signing.signed))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(factory.run())
        tasks.create_task(controller.run())
