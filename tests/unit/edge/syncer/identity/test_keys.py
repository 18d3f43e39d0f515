"""Keys come from a program of their own, and why none came is a sentence."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from skerry.edge.syncer.identity.keys import NoKey, make_key
from tests.kit.chain.issuing_hub import EDGE


async def test_a_key_comes_with_its_request_and_the_credential_it_is_for() -> None:
    made = await make_key(EDGE, "redeem:abc001")
    assert made.credential == "redeem:abc001"
    assert made.key.startswith("-----BEGIN PRIVATE KEY-----")
    assert made.request.startswith("-----BEGIN CERTIFICATE REQUEST-----")
    assert made.name


async def test_a_program_that_fails_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\ncat >/dev/null\necho first >&2\necho no entropy >&2\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(broken))
    with pytest.raises(NoKey, match="ended with exit code 3: no entropy"):
        await make_key(EDGE, "redeem:abc001")
