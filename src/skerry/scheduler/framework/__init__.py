"""The machine that decides: extension points, statuses, registry, profiles and their runner.

Nothing here knows what is placed or where. *Items* (pods, placements) and *targets* (nodes, edge
locations) are type parameters; a table gives targets stable row numbers, so that plugins may
answer for all rows at once. Nothing here does I/O or reads a clock; the few points that must
(binding) are coroutines of the plugins themselves.
"""
