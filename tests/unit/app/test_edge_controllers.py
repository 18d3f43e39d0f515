"""What a process of edge controllers is configured with, and what its controllers make of it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from skerry.app.edge_controllers import ControllerSettings, DenaturedKinds, translation_of


def test_unless_configured_otherwise_the_hub_decides_whether_kinds_are_withheld() -> None:
    chosen = translation_of(ControllerSettings())
    assert chosen.withhold_denatured is None
    assert chosen.strict_customization


@pytest.mark.parametrize(("said", "withheld"), [("withhold", True), ("copy", False)])
def test_what_is_said_of_denatured_kinds_counts_on_every_hub(
    said: DenaturedKinds, withheld: bool
) -> None:
    settings = ControllerSettings(denatured_kinds=said, strict_customization=False)
    chosen = translation_of(settings)
    assert chosen.withhold_denatured is withheld
    assert not chosen.strict_customization


def test_a_process_of_one_controller_loads_no_other_and_no_api_server() -> None:
    """What is loaded is read, and kept in memory, at every start."""
    program = (
        "import sys\n"
        "import skerry.app.edge_controllers\n"
        "import skerry.controllers.placement_translator.controller\n"
        "print(*(name for name in sys.argv[1:] if name in sys.modules))\n"
    )
    unwanted = [
        "skerry.controllers.edge_scheduler.controller",
        "skerry.controllers.summarizer.controller",
        "skerry.controllers.status_queries.controller",
        "skerry.logic.machinery.builtin",
        "skerry.logic.machinery.cel",
        "skerry.logic.machinery.crd",
    ]
    command = [sys.executable, "-c", program, *unwanted]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout.split() == []
