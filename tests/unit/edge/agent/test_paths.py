"""Paths of a container as places on the machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.edge.agent.paths import filled, real_path, with_real_paths, with_real_ports
from skerry.edge.agent.runtime import Mount, Volume

MOUNTS = [
    Mount("/data", Volume(Path("/real/data"))),
    Mount("/data/inner", Volume(Path("/real/inner"))),
]


class TestPaths:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("cat /data/x", "cat /real/data/x"),
            ("cat /data", "cat /real/data"),
            ("cat /data/inner/y", "cat /real/inner/y"),
            ("cat /database /mydata/data", "cat /database /mydata/data"),
            ('echo a>"/data/x";ls', 'echo a>"/real/data/x";ls'),
            ("--dir=/data", "--dir=/real/data"),
            ("/data:/data/inner", "/real/data:/real/inner"),
            ("/other/data/x", "/other/data/x"),
        ],
    )
    def test_paths_below_mounts_are_replaced_and_no_others(self, text: str, expected: str) -> None:
        assert with_real_paths(text, MOUNTS) == expected

    def test_the_longest_mount_wins(self) -> None:
        assert real_path("/data/inner/z", MOUNTS) == "/real/inner/z"
        assert real_path("/data/", MOUNTS) == "/real/data"
        assert real_path("/elsewhere", MOUNTS) == "/elsewhere"

    @given(st.text(alphabet="abc /.-\n"))
    def test_text_without_mounts_is_left_alone(self, text: str) -> None:
        assert with_real_paths(text, []) == text

    @pytest.mark.parametrize(
        ("argument", "expected"),
        [
            ("80", "4000"),
            (":80", ":4000"),
            ("--port=80", "--port=4000"),
            ("0.0.0.0:80", "0.0.0.0:4000"),
            ("8080", "8080"),
            ("sleep 80", "sleep 80"),
            ("x80", "x80"),
        ],
    )
    def test_an_argument_that_is_a_port_is_replaced(self, argument: str, expected: str) -> None:
        assert with_real_ports(argument, {80: 4000}) == expected

    def test_places_of_a_catalogue_entry_are_filled(self) -> None:
        ports = {80: 4000, 443: 4001}
        assert filled("{port}", ports, 80, MOUNTS) == "4000"
        assert filled("--tls={port:443}", ports, 80, MOUNTS) == "--tls=4001"
        assert filled("{path:/data/www}", ports, 80, MOUNTS) == "/real/data/www"
        assert filled("{other}", ports, 80, MOUNTS) == "{other}"
