"""One file per command of the skerry program."""
