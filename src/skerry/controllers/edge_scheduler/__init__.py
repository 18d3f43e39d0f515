"""Answers each EdgePlacement with the destinations its selectors mean.

Reads EdgePlacements and SinglePlacementSlices in the view of the provider's export
``edge.kcp.io``, Locations and SyncTargets in the views of root's exports, and Workspaces once a
placement asks for their labels or a LocationGrant for their paths. Writes slices, the placements'
status, and for each inventory workspace with grants their status and its LocationConsent.

Invariants: the slices of a placement, read together, hold exactly the destinations the index
gives, and belong to it; whoever edits or deletes one sees it restored. After no single write do
they lack a destination that stays. A slice is written only when it differs. An invalid selector
changes no slice at all: what was placed stays, and a condition says why. A placement that is gone
keeps its slices until the garbage collector, which knows the owner itself, takes them.

Where an inventory workspace enforces its grants, no destination comes in that none of them admits,
and none that is in the slices goes for the lack of a grant until a person has confirmed that.

The work is proportional to the change: an event handler puts what it got into the index, which
answers with the placements touched; those are the keys.

* ``events``: which event enqueues which placement; the only writers of the index.
* ``observe``: the index and the slices' cache, with our own writes on top, at one moment;
  ``observed``: what comes of that, frozen.
* ``decide``: slices; ``status``: the placement's status; ``consent``: grants and their reports.
* ``guards``: what may leave now; ``guard_status``: what guards hold. ``rollouts``: what is known of
  Rollouts; ``rollout_plan``: which destination gets which revision; ``staged_removal``: taking a
  placement away wave by wave. ``history``: what a plan decides, as records; ``authors``: who caused
  it; ``history_writer``: writes them, before the slices change.
* ``logging_executor``: carries plans out, receivers before givers.
* ``memory``: what is kept from one reconcile to the next; ``running``: the part that holds need.
* ``controller``: wiring.

A placement without guards and without Rollout passes through ``decide`` alone. With them its plan
grows at the front: first what lets somebody go is written into the placement's book, then the
record of the decision, then slices. Each of these can be the last thing a process does: what was
written first never permits less than what follows, so whoever comes next may go on or ask again.
Where the server takes atomic batches, the record and the slices are written at once.
"""
