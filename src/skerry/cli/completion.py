"""skerry completion: what makes a shell complete skerry's commands and flags."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from skerry.cli.printing import show_text

_VARIABLE = "_SKERRY_COMPLETE"
SHELLS = ("bash", "zsh", "fish")


@click.command(
    epilog="""\b
Examples:
  source <(skerry completion bash)                                    this shell only
  skerry completion bash > ~/.local/share/bash-completion/completions/skerry
  skerry completion zsh > "${fpath[1]}/_skerry"
  skerry completion fish > ~/.config/fish/completions/skerry.fish

kubectl completes the plugins (ws, workspace, kcp, kubestellar) by itself, once its own completion
is loaded: source <(kubectl completion bash)
"""
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that completes skerry in SHELL."""
    root = context.find_root()
    script = get_completion_class(shell)
    # Every choice has one; click says None of shells it does not know.
    if script is None:
        raise click.UsageError(f"there is no completion for {shell}")
    show_text(f"{script(root.command, {}, 'skerry', _VARIABLE).source()}\n")
