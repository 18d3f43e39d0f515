"""What every controller stands on. Knows the server by the wire only."""
