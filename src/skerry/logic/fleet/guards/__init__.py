"""How much a change may do before a person is asked.

* ``spec``: PlacementGuards as records, and what is wrong with them; ``loosening``: whether one
  would be looser than it was. ``index``: which of them concern a placement.
* ``budget``: what of a loss may happen now. All guards come down to this one decision.
* ``book``: what was let go within a window and what is held, as a placement's status says it.
* ``freeze``: when nothing moves; ``schedule``: local times as instants.
* ``token``: by what a person confirms exactly what was shown.
* ``foresight``: what would be held of a change that nobody has made yet.

One set of functions for the edge scheduler, the placement translator and a hub's admission: what
one of them lets pass, the next does not hold. Admission is the courtesy that tells early; what
counts is the book, which is written, with the version that was read, before anything goes.
"""
