"""The rules of a definition's conversion."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.logic.machinery.crd.conversion import conversion_errors, webhook_of

SERVICE = {"service": {"namespace": "n", "name": "s", "port": 443}}


def wrong(**conversion: Any) -> list[str]:
    return [str(error).split(": ")[0] for error in conversion_errors({"conversion": conversion})]


def webhook(versions: Any = ("v1",), config: Any = SERVICE) -> dict[str, Any]:
    return {"clientConfig": config, "conversionReviewVersions": list(versions)}


def test_no_conversion_and_none_need_nothing() -> None:
    assert list(conversion_errors({})) == []
    assert wrong(strategy="None") == []
    assert wrong(strategy="Webhook", webhook=webhook()) == []


def test_a_strategy_is_one_of_two() -> None:
    assert wrong() == ["spec.conversion.strategy"]
    assert wrong(strategy="Other") == ["spec.conversion.strategy"]


def test_what_belongs_to_webhooks_is_for_them_alone() -> None:
    assert wrong(strategy="None", webhook=webhook()) == [
        "spec.conversion.webhookClientConfig",
        "spec.conversion.conversionReviewVersions",
    ]


def test_a_webhook_needs_somebody_to_ask_and_a_version_we_speak() -> None:
    assert wrong(strategy="Webhook") == [
        "spec.conversion.webhookClientConfig",
        "spec.conversion.conversionReviewVersions",
    ]
    path = "spec.conversion.conversionReviewVersions"
    assert wrong(strategy="Webhook", webhook=webhook(["v1", "v1"])) == [f"{path}[1]"]
    assert wrong(strategy="Webhook", webhook=webhook(["v1", "1.x"])) == [f"{path}[1]"]
    assert wrong(strategy="Webhook", webhook=webhook(["v9"])) == [path]


@pytest.mark.parametrize(
    ("strategy", "versions", "asked"),
    [("Webhook", 2, True), ("Webhook", 1, False), ("None", 2, False)],
)
def test_a_webhook_is_asked_where_versions_differ(
    strategy: str, versions: int, asked: bool
) -> None:
    listed = [{"name": f"v{number}"} for number in range(versions)]
    spec = {"versions": listed, "conversion": {"strategy": strategy, "webhook": webhook()}}
    assert (webhook_of({"spec": spec}) is not None) is asked


def test_the_first_version_that_both_speak_is_spoken() -> None:
    listed = [{"name": "v1"}, {"name": "v2"}]
    conversion = {"strategy": "Webhook", "webhook": webhook(["v9", "v1beta1", "v1"])}
    found = webhook_of({"spec": {"versions": listed, "conversion": conversion}})
    assert found is not None
    assert found.version in ("v1beta1", "v1")
    assert found.version != "v9"
