"""The chain as its stories play it, and how stories are read."""
