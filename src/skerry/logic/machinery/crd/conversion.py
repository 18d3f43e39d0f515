"""The rules of ``spec.conversion``: versions differ in name only, or a webhook converts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from skerry.api.errors import FieldError
from skerry.api.objects import Raw
from skerry.logic.machinery import names
from skerry.logic.machinery.crd.definition import mapping, sequence, spec_of, text, versions_of
from skerry.logic.machinery.remote_conversion import ConversionWebhook
from skerry.logic.machinery.reviews import REVIEW_VERSIONS
from skerry.logic.machinery.webhook_clients import client_config, client_errors


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


def webhook_of(crd: Mapping[str, Any]) -> ConversionWebhook | None:
    """Return who converts objects of *crd*; None where nobody does or nothing needs to be."""
    conversion = mapping(spec_of(crd).get("conversion"))
    if conversion.get("strategy") != "Webhook" or len(versions_of(crd)) < 2:
        return None
    webhook = mapping(conversion.get("webhook"))
    spoken = map(text, sequence(webhook.get("conversionReviewVersions")))
    version = next((each for each in spoken if each in REVIEW_VERSIONS), "v1")
    return ConversionWebhook(client_config(mapping(webhook.get("clientConfig"))), version)


def _client_config(config: Any, path: str) -> Iterator[FieldError]:
    if config is None:
        yield FieldError.required(path, "required when strategy is set to Webhook")
        return
    yield from client_errors(mapping(config), path)


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
    if not seen.intersection(REVIEW_VERSIONS):
        detail = f"must include at least one of {', '.join(REVIEW_VERSIONS)}"
        yield FieldError.invalid(path, list(versions), detail)
