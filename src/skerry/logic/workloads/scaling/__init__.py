"""How many pods a workload should have: by what they use, and how fast that may change."""
