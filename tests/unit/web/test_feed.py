"""The console of a real hub, fed by its own informers: what is written is seen, within rights."""

from __future__ import annotations

from pathlib import Path

from tests.kit.server.console import an_edge_appears_and_a_right_taken_away_empties_the_view
from tests.kit.server.hub import running_hub


async def test_an_edge_appears_and_a_right_taken_away_empties_the_view(tmp_path: Path) -> None:
    async with running_hub(tmp_path, console=True, edge_provider=True) as hub:
        await an_edge_appears_and_a_right_taken_away_empties_the_view(hub)
