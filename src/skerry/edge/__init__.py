"""What runs at an edge: the syncer and the node agent."""
