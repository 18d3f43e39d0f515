"""The rules of ``spec.conversion``.

Only the strategy None is carried out by this server. A webhook's configuration is checked and
kept as data, so that definitions written for other servers can be stored; ``unsupported`` says
so to whoever writes one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from skerry.api.errors import FieldError
from skerry.logic.machinery import names
from skerry.logic.machinery.crd.definition import mapping, sequence, spec_of, text
from skerry.logic.machinery.urls import split_url

Raw = Mapping[str, Any]
_REVIEW_VERSIONS = ("v1", "v1beta1")
_NOT_CALLED = (
    "spec.conversion.strategy: conversion webhooks are not called; "
    "objects are served at every version as they are stored"
)
_FORM = "; desired format: https://host[/path]"


def conversion_errors(spec: Raw) -> Iterator[FieldError]:
    """Yield what is wrong with the conversion of a definition's spec."""
    conversion = spec.get("conversion")
    if not isinstance(conversion, dict):
        return
    path = "spec.conversion"
    strategy = text(conversion.get("strategy"))
    webhook = mapping(conversion.get("webhook"))
    versions = sequence(webhook.get("conversionReviewVersions"))
    if not strategy:
        yield FieldError.required(f"{path}.strategy")
    elif strategy not in ("None", "Webhook"):
        yield FieldError.not_supported(f"{path}.strategy", strategy, ("None", "Webhook"))
    if strategy == "Webhook":
        yield from _client_config(webhook.get("clientConfig"), f"{path}.webhookClientConfig")
        yield from _review_versions(versions, f"{path}.conversionReviewVersions")
        return
    detail = "should not be set when strategy is not set to Webhook"
    if webhook.get("clientConfig") is not None:
        yield FieldError.forbidden(f"{path}.webhookClientConfig", detail)
    if versions:
        yield FieldError.forbidden(f"{path}.conversionReviewVersions", detail)


def unsupported(crd: Raw) -> list[str]:
    """Return a warning for a definition whose conversion this server will not carry out."""
    conversion = mapping(spec_of(crd).get("conversion"))
    if conversion.get("strategy") != "Webhook":
        return []
    return [_NOT_CALLED]


def _client_config(config: Any, path: str) -> Iterator[FieldError]:
    if config is None:
        yield FieldError.required(path, "required when strategy is set to Webhook")
        return
    url, service = mapping(config).get("url"), mapping(config).get("service")
    if (url is None) == (service is None):
        yield FieldError.required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from _url(text(url), f"{path}.url")
    else:
        yield from _service(mapping(service), f"{path}.service")


def _url(url: str, path: str) -> Iterator[FieldError]:
    try:
        parts = split_url(url)
    except ValueError as error:
        yield FieldError.required(path, f"url must be a valid URL: {error}{_FORM}")
        return
    if parts.scheme != "https":
        detail = f"'https' is the only allowed URL scheme{_FORM}"
        yield FieldError.invalid(path, parts.scheme, detail)
    if not parts.netloc:
        yield FieldError.invalid(path, "", f"host must be specified{_FORM}")
    if "@" in parts.netloc:
        user = parts.netloc.rpartition("@")[0]
        detail = "user information is not permitted in the URL"
        yield FieldError.invalid(path, user, detail)
    if parts.fragment:
        detail = "fragments are not permitted in the URL"
        yield FieldError.invalid(path, parts.fragment, detail)
    if parts.query:
        detail = "query parameters are not permitted in the URL"
        yield FieldError.invalid(path, parts.query, detail)


def _service(service: Raw, path: str) -> Iterator[FieldError]:
    for name in ("name", "namespace"):
        if not service.get(name):
            yield FieldError.required(f"{path}.{name}")
    port = service.get("port", 443)
    wrong = names.port_number(port) if isinstance(port, int) else []
    if wrong:
        detail = f"port is not valid: {', '.join(wrong)}"
        yield FieldError.invalid(f"{path}.port", port, detail)
    yield from _service_path(text(service.get("path")), f"{path}.path")


def _service_path(url_path: str, path: str) -> Iterator[FieldError]:
    if url_path in ("", "/"):
        return
    if url_path == "//":
        yield FieldError.invalid(path, url_path, "segment[0] may not be empty")
        return
    if not url_path.startswith("/"):
        yield FieldError.invalid(path, url_path, "must start with a '/'")
    for index, segment in enumerate(url_path[1:].removesuffix("/").split("/")):
        if not segment:
            yield FieldError.invalid(path, url_path, f"segment[{index}] may not be empty")
            continue
        for wrong in names.dns1123_subdomain(segment):
            yield FieldError.invalid(path, url_path, f"segment[{index}]: {wrong}")


def _review_versions(versions: Any, path: str) -> Iterator[FieldError]:
    if not versions:
        yield FieldError.required(path)
        return
    seen: set[str] = set()
    for index, version in enumerate(map(text, versions)):
        if version in seen:
            yield FieldError.invalid(f"{path}[{index}]", version, "duplicate version")
            continue
        seen.add(version)
        for wrong in names.dns1035_label(version):
            yield FieldError.invalid(f"{path}[{index}]", version, wrong)
    if not seen.intersection(_REVIEW_VERSIONS):
        detail = f"must include at least one of {', '.join(_REVIEW_VERSIONS)}"
        yield FieldError.invalid(path, list(versions), detail)
