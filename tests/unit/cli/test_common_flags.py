"""Flags that commands of every kind have."""

from __future__ import annotations

import click
from click.testing import CliRunner

from skerry.cli.common_flags import output_flag, with_flags


def test_flags_are_shown_in_the_order_they_are_given() -> None:
    flags = [click.option("--first"), click.option("--second")]
    shown = CliRunner().invoke(click.command()(with_flags(lambda **_: None, flags)), ["--help"])
    assert shown.output.index("--first") < shown.output.index("--second")


def test_the_first_form_of_an_answer_is_the_usual_one_and_others_are_refused() -> None:
    @click.command()
    @output_flag("table", "csv")
    def ask(output: str) -> None:
        print(output)

    assert CliRunner().invoke(ask).output == "table\n"
    assert CliRunner().invoke(ask, ["-o", "csv"]).output == "csv\n"
    refused = CliRunner().invoke(ask, ["--output", "yaml"])
    assert refused.exit_code == 2
    assert "'yaml' is not one of 'table', 'csv'" in refused.output
