"""Keeps what a hub says of its edges true: whether they live, and how many a Location has."""
