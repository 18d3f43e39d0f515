"""``python -m skerry.cli``: the same as the skerry command."""

from skerry.cli.main import main

main()
