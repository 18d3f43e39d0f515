"""Users whom a proxy in front of the server names in headers.

The proxy proves itself with a client certificate of an authority of its own; what it says of who
asks is then believed. From anybody else such headers mean nothing.
"""

from __future__ import annotations

from skerry.api.errors import Unauthorized
from skerry.logic.machinery.front_proxy import FrontProxySettings, named
from skerry.server.http.message import Request
from skerry.server.security.client_certificates import ClientCertificates
from skerry.server.user import User


class FrontProxy:
    """Users by headers; *certificates* are those of proxies."""

    def __init__(self, settings: FrontProxySettings, certificates: ClientCertificates) -> None:
        self._settings = settings
        self._certificates = certificates

    def user(self, request: Request) -> User | None:
        """Return the user that a proxy names; None when no proxy asks, or it names nobody."""
        certificate = request.peer.certificate
        found = None if certificate is None else named(self._settings, request.headers)
        if found is None or certificate is None or not self._believed(certificate):
            return None
        return User(found.name, "", found.groups, dict(found.extra))

    def forget(self) -> None:
        """Check every certificate anew when it is next shown."""
        self._certificates.forget()

    def _believed(self, certificate: bytes) -> bool:
        try:
            proxy = self._certificates.user(certificate)
        except Unauthorized:
            # Somebody else's certificate; what that is good for is found out elsewhere.
            return False
        allowed = self._settings.allowed_names
        return proxy is not None and (not allowed or proxy.name in allowed)
