"""Flags that several processes cannot have together are refused before anything is made."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from skerry.cli.main import main


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ((), "needs --store etcd: SQLite is written by one process, which holds the file"),
        (("--store", "memory"), "needs --store etcd: what is kept in memory is one process's own"),
        (
            ("--store", "etcd", "--tunnel", "--audit-log", "audit.log"),
            "--tunnel needs --processes 1, not 4: a tunnel ends in the process",
        ),
    ],
)
def test_what_several_processes_cannot_do_is_said_in_a_sentence(
    flags: tuple[str, ...], sentence: str, tmp_path: Path
) -> None:
    data_dir = tmp_path / "data"
    ended = CliRunner().invoke(
        main, ["hub", "--data-dir", str(data_dir), "--processes", "4", *flags]
    )
    assert ended.exit_code == 2
    assert sentence in " ".join(ended.output.split())
    assert not data_dir.exists()
