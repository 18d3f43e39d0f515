"""Real processes and real clients; nothing of the server is imported to drive it."""
