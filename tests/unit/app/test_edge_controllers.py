"""What a process of edge controllers is configured with, and what its controllers make of it."""

from __future__ import annotations

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
