"""Why an object is or is not at a destination, along the whole way it travels.

* ``links``: the steps of the way, and what was found at each.
* ``what``: why an object is or is not meant by a placement; ``way``: from the Location to the
  health of the copy; ``silence``: an edge that is not heard of.
* ``answer``: every pair of a placement's Locations and objects; ``problems``: what is wrong in it.
* ``changes``: which destinations an edit not yet made would add and remove; ``contents``: what it
  would change in the copies there.
* ``standing``: where placements are by their slices, and tables kept up to answer from.
* ``consent``: a LocationConsent in words; ``text``: all of it for people.

Promise: nothing is judged here a second time. A step is answered by the function by which its
controller acts (``placement.destination``, ``translation.copies``, ``summary.report``), from the
same objects. So the answer is about what really happens; and where a controller has not got there
yet, the answer is *unknown*, because either of the others would be a guess.
"""
