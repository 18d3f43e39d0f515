"""Tables that derive from each other, kept up at the cost of the change.

The edge chain is a few watched tables (placements, slices, sources, copies) and what follows from
them: destinations, routes, desired copies, differences, reports, tallies. ``chain`` lists them in
order: the map of the product. The rest of this package is what they all stand on:

* ``table``: rows by key, and what one batch changed;
* ``relation``: rows by a pair of keys, found from either side;
* ``operators``: map, filter, union, lookup, join, group, over stored tables;
* ``product``: the product of two relations, which is never stored, and folds over it;
* ``flow``: the tables of one owner in the order they derive; settling a batch;
* ``completeness``: unknown is not absent, the one rule by which a row may become a deletion.

Promises, each a test: after any batches every derived table equals what its inputs alone give; what
comes out does not depend on how changes were split or ordered; a batch costs what it changes, in
rows touched; nothing is deleted because of what has not been read. No clock, no I/O:
time enters as a row.
"""
