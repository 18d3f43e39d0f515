"""What was decided about a placement, when and why: DecisionRecords made, read and folded.

* ``record``: decisions as objects, their names, digests and order; and back; ``fields``: what has
  to be true of a record for its readers.
* ``packing``: sets of destinations, and whole states, as short text.
* ``fold``: the state at a time, from the newest checkpoint before it; ``compare``: two states.
* ``difference``: what a plan for slices decides, as decisions; ``reasons``: why somebody came or
  went; ``audit``: who deleted what caused it. ``observations``: what edges made of a revision;
  ``objects``: what became of single objects.
* ``chain``: whether records follow each other without a gap.
* ``writing``: how records are written, and found again by whoever wrote them.
* ``retention``: what may be dropped, and which checkpoint must stand first.
* ``text``: the story as a table; ``times``: the times that people write.

**How records name destinations.** A destination with a slot (its placement has a Rollout) is a bit
in ``destinations.slots``. One without is an entry of ``destinations.keys``: eight bytes of a digest
of its cluster, Location, SyncTarget and UID. A key needs no memory: every process computes the same
one, so nothing has to be numbered or recovered, and two writers agree. Newcomers are there in full,
and so is everybody in a checkpoint, so every later key or slot can be resolved by folding.

**Order.** A name holds the store revision that the decision followed from (that of the newest slice
it found) and a counter; names sort in the order of decisions. Times are for people: clocks step.
"""
