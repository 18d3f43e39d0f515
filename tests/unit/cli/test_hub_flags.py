"""Flags that find a hub, and how a command without an answer ends."""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.testing import CliRunner

from skerry.api.errors import NotFound
from skerry.app.hub_settings import HubSettings
from skerry.cli.hub_flags import answer_or_exit, finds_hub, hub_settings


def given(*words: str, **environment: str) -> HubSettings:
    found: list[HubSettings] = []

    def command(**flags: Any) -> None:
        found.append(hub_settings(flags))

    made = click.command()(finds_hub(command))
    result = CliRunner().invoke(made, list(words), env={"KUBECONFIG": "", **environment})
    assert result.exit_code == 0, result.output
    return found[0]


def test_flags_and_environment_become_settings() -> None:
    settings = given("--kubeconfig", "f", "--context", "c", KUBECONFIG="/a:/b", HOME="/h")
    assert (settings.kubeconfig, settings.context, settings.provider) == ("f", "c", "")
    assert settings.environment == {"KUBECONFIG": "/a:/b", "HOME": "/h"}


def test_what_is_refused_ends_with_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    async def absent() -> int:
        raise NotFound("no such placement")

    with pytest.raises(SystemExit) as ended:
        answer_or_exit("explain", absent)
    assert ended.value.code == 1
    assert capsys.readouterr().err == "skerry explain: no such placement\n"


def test_a_mistake_of_ours_is_no_refusal() -> None:
    async def wrong() -> int:
        raise KeyError("bug")

    with pytest.raises(KeyError):
        answer_or_exit("explain", wrong)
    with pytest.raises(SystemExit):
        answer_or_exit("grants", wrong, LookupError)
