"""Where workloads go: an index of Locations, SyncTargets and EdgePlacements.

Matching is set algebra on compressed bitmaps, both ways: a selector finds its Locations, and the
labels of a Location find the selectors they satisfy. So a change costs what it touches.

* ``records``: the facts of objects that placement depends on; ``numbers``: small numbers for them.
* ``terms``: what selectors demand of one label key; a small Boolean algebra.
* ``labels``: things by their labels; selectors find them.
* ``demands``: selectors by their terms; labels find them. ``postings``: the sets both keep.
* ``inventory``: Locations, SyncTargets, and which SyncTargets a Location has.
* ``destination``: EdgePlacements on top of that, and their destinations: the table;
  ``reference``: the same as a scan.
* ``strategy``: what a placement says of choosing some of them; ``choosing``: who does.
* ``grants``: whom the owner of an inventory lets in; ``grant_finder``: which of them are about a
  workspace or Location; ``workspace_tree``: paths of workspaces; ``consent``: which Locations are
  open to whom. ``holds``: what runs without a grant, and by which id its removal is confirmed;
  ``consent_record``: where that is written.
* ``pages``: which destination is in which slice; ``slices``: those as SinglePlacementSlices;
  ``slots``: their lasting numbers under a Rollout; ``slice_guard``: who may write them.
* ``explain``, ``whatif``: why, why not, and what would change; ``edits``: the smallest edit that
  turns an answer around. ``reported_state``: which state a placement asks for in its sources.
* ``heartbeat``: what a syncer's sign of life means.
"""
