"""What the console shows, as pure rules: frames, filters, records of edges, views and patches."""
