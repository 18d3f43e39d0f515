"""Benchmarks: one command, JSON and a readable table, alternatives compared in one run."""
