"""How a change of a placement's content reaches its destinations: in waves, judged, reversible.

* ``spec``: a Rollout's wishes, read and validated; ``expression``: the CEL in them.
* ``bitmaps``: sets of slots as they travel.
* ``waves``: which destinations a wave holds, and in which order they go.
* ``evidence``: what the reports of one destination come to; ``verdict``: what is to be thought of
  it at a revision; ``judging``: all destinations of one rollout, at the cost of what changes.
* ``state``: what a Rollout's status remembers; ``view``: what a situation comes to;
  ``advance``: the state table, as data; ``clocks``: how long ago something was,
  whatever the wall clock does.
* ``assign``: which slots get which revision now; ``departing``: who goes.
* ``foresight``: the rollout that a change would start.
* ``conditions``, ``text``: a rollout in words, for tools that wait and for people.

The scheduler advances and assigns, the summarizer judges; they meet in the Rollout's status alone.
Promises: a destination that is bad at the target costs its wave and no later one; nothing is
assigned that was not judged good where the waves before ask so; and a process that dies anywhere
goes on from the status, because what is decided is a function of it and of what is reported.
"""
