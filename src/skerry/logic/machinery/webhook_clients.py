"""Where webhooks are: client configurations, as admission and conversion have them."""

from __future__ import annotations

import base64
import binascii
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from skerry.api.errors import FieldError
from skerry.logic.machinery.names import dns1123_subdomain
from skerry.logic.machinery.urls import split_url

Errors = list[FieldError]

_HTTPS_PORT: Final = 443
_FORM: Final = "; desired format: https://host[/path]"


@dataclass(frozen=True, slots=True)
class ServiceRef:
    """A Service that stands before a webhook."""

    namespace: str
    name: str
    port: int


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """How a webhook is reached: at ``host``, or through a Service by whose name it is known."""

    host: str
    port: int
    path: str
    # PEM; empty means what the system trusts, None that it cannot be read.
    ca_bundle: bytes | None
    service: ServiceRef | None = None
    # As messages show it, without query.
    url: str = ""


def client_config(raw: Mapping[str, Any]) -> ClientConfig:
    """Read the ``clientConfig`` of a stored object."""
    bundle = _bundle(raw.get("caBundle") or "")
    service = raw.get("service")
    if service:
        name, namespace = service.get("name") or "", service.get("namespace") or ""
        port, host = service.get("port") or _HTTPS_PORT, f"{name}.{namespace}.svc"
        path = _cleaned(service.get("path") or "")
        url = f"https://{host}:{port}{path if path != '/' else ''}"
        return ClientConfig(host, port, path, bundle, ServiceRef(namespace, name, port), url)
    url = raw.get("url") or ""
    try:
        parts = split_url(url)
        port = parts.port or _HTTPS_PORT
    except ValueError:
        # What is stored was valid; an older server's idea of that may differ.
        return ClientConfig("", _HTTPS_PORT, "/", bundle, url=url)
    path = _cleaned(parts.path)
    if parts.path:
        url = f"{parts.scheme}://{parts.netloc}{path}"
    return ClientConfig(parts.hostname or "", port, path, bundle, url=url)


def _cleaned(path: str) -> str:
    """Return *path* as Kubernetes' client asks for it: no empty segments, none at the end.

    envtest's URLs begin theirs with two slashes, and Go's servers redirect such requests.
    """
    return "/" + posixpath.normpath("/" + path).lstrip("/")


def _bundle(text: str) -> bytes | None:
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return None


def default_client(raw: Any) -> None:
    """Fill in the port of a Service."""
    service = (raw or {}).get("service")
    if service is not None and service.get("port") is None:
        service["port"] = _HTTPS_PORT


def client_errors(raw: Mapping[str, Any], path: str) -> Errors:
    """Return what is wrong with a ``clientConfig`` at *path*."""
    url, service = raw.get("url"), raw.get("service")
    if (url is None) == (service is None):
        return [FieldError.required(path, "exactly one of url or service is required")]
    if url is not None:
        return url_errors(url, f"{path}.url")
    return _service_errors(service or {}, f"{path}.service")


def url_errors(url: str, path: str) -> Errors:
    """Return what is wrong with the URL of a webhook."""
    try:
        parts = split_url(url)
        parts.port  # noqa: B018  # looked at only when asked for
    except ValueError as error:
        return [FieldError.required(path, f"url must be a valid URL: {error}{_FORM}")]
    errors: Errors = []
    if parts.scheme != "https":
        why = f"'https' is the only allowed URL scheme{_FORM}"
        errors.append(FieldError.invalid(path, parts.scheme, why))
    if not parts.netloc:
        errors.append(FieldError.invalid(path, parts.netloc, f"host must be specified{_FORM}"))
    user, at, _ = parts.netloc.rpartition("@")
    if at:
        why = "user information is not permitted in the URL"
        errors.append(FieldError.invalid(path, user, why))
    if parts.fragment:
        why = "fragments are not permitted in the URL"
        errors.append(FieldError.invalid(path, parts.fragment, why))
    if parts.query:
        why = "query parameters are not permitted in the URL"
        errors.append(FieldError.invalid(path, parts.query, why))
    return errors


def _service_errors(service: Mapping[str, Any], path: str) -> Errors:
    errors: Errors = []
    for name in ("name", "namespace"):
        if not service.get(name):
            errors.append(FieldError.required(f"{path}.{name}", f"service {name} is required"))
    port = service.get("port")
    if port is not None and not 1 <= port <= 65535:
        why = "port is not valid: must be between 1 and 65535, inclusive"
        errors.append(FieldError.invalid(f"{path}.port", port, why))
    return errors + _path_errors(service.get("path") or "", f"{path}.path")


def _path_errors(text: str, path: str) -> Errors:
    if text in ("", "/"):
        return []
    if text == "//":
        return [FieldError.invalid(path, text, "segment[0] may not be empty")]
    errors: Errors = []
    if not text.startswith("/"):
        errors.append(FieldError.invalid(path, text, "must start with a '/'"))
    for index, step in enumerate(text[1:].removesuffix("/").split("/")):
        wrong = dns1123_subdomain(step) if step else ()
        if not step:
            errors.append(FieldError.invalid(path, text, f"segment[{index}] may not be empty"))
        errors += [FieldError.invalid(path, text, f"segment[{index}]: {each}") for each in wrong]
    return errors
