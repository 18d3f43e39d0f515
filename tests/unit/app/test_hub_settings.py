"""Which kubeconfig files a command reads: the flag's, else the variable's, else kubectl's own."""

from __future__ import annotations

from pathlib import Path

from skerry.app.hub_settings import HubSettings

HERE = {"KUBECONFIG": "/one:/two", "HOME": "/home/me"}


def test_the_flag_comes_before_the_variable_and_that_before_the_usual_file() -> None:
    assert HubSettings("/flag", environment=HERE).paths() == [Path("/flag")]
    assert HubSettings(environment=HERE).paths() == [Path("/one"), Path("/two")]
    without = {"HOME": "/home/me"}
    assert HubSettings(environment=without).paths() == [Path("/home/me/.kube/config")]
