"""Control loops of one shape each; they do not know each other."""
