"""How a change of a placement's content reaches its destinations: in waves, judged, reversible.

* ``spec``: a Rollout's wishes, read and validated; ``expression``: the CEL in them.
* ``bitmaps``: sets of slots as they travel.
* ``waves``: which destinations a wave holds, and in which order they go.
* ``verdict``: what is to be thought of one destination at a revision.
* ``state``: what a Rollout's status remembers; ``advance``: the state table, as data.
* ``assign``: which slots get which revision now.
"""
