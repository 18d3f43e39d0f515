"""Where workloads go: an index of Locations, SyncTargets and EdgePlacements.

Matching is set algebra on compressed bitmaps, both ways: a selector finds its Locations, and the
labels of a Location find the selectors they satisfy. So a change costs what it touches.

* ``terms``: what selectors demand of one label key; a small Boolean algebra.
* ``labels``: things by their labels; selectors find them.
* ``demands``: selectors by their terms; labels find them.
* ``inventory``: Locations, SyncTargets, and which SyncTargets a Location has.
* ``destination``: EdgePlacements on top of that, and their destinations: the table;
  ``reference``: the same as a scan.
* ``strategy``: what a placement says of choosing some of them; ``choosing``: who does.
* ``grants``: whom the owner of an inventory lets in; ``workspace_tree``: paths of workspaces;
  ``consent``: which Locations are open to whom.
* ``pages``: which destination is in which slice; ``slices``: those as SinglePlacementSlices.
* ``explain``, ``whatif``: why, why not, and what would change.
* ``warnings``: what the writer of a placement or a grant hears at once.
* ``heartbeat``: what a syncer's sign of life means.
"""
