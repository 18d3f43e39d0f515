"""Without a kubectl that is new enough, the tests say what to install, in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.e2e.processes import refuse_old_kubectl


def test_an_absent_kubectl_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError) as raised:
        refuse_old_kubectl()
    assert str(raised.value) == (
        "the end-to-end tests need kubectl 1.29 or newer on PATH: install it; none was found"
    )


def test_an_old_kubectl_is_reported_with_its_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake = tmp_path / "kubectl"
    fake.write_text('#!/bin/sh\necho \'{"clientVersion": {"gitVersion": "v1.28.9"}}\'\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(RuntimeError) as raised:
        refuse_old_kubectl()
    assert str(raised.value).endswith("install it; found 1.28")
