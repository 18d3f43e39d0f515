"""Watch: from the store's events to every client that asked."""
