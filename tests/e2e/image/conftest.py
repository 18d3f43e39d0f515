from __future__ import annotations

import fcntl
import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.kit.image.building import Image
from tests.kit.image.ours import built


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """The image for edges, built once for all workers of a run."""
    if os.geteuid() != 0:
        pytest.skip("only root becomes the image's user")
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, record = shared / "image", shared / "image.json"
    for parent in (base, shared, shared.parent):
        parent.chmod(0o755)  # the image's user must reach its root
    with (shared / "image.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not record.exists():
            folder.mkdir()
            record.write_text(json.dumps(asdict(built(folder)), default=str))
    found = json.loads(record.read_text())
    return Image(**{**found, "root": Path(found["root"])})
