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
* ``decide``: slices; ``status``: the placement's status; ``consent``: what grants
  refuse and hold, as reports; ``grant_status``: a grant's own; ``unreconciled``: whom a report
  waits for after another process led.
* ``guards``: what may leave now; ``guard_status``: what guards hold. ``rollouts``: what is known of
  Rollouts; ``rollout_plan``: which destination gets which revision; ``rollout_finalizer``: keeping
  one that is deleted; ``staged_removal``: taking a placement away wave by wave. ``history``: what a
  plan decides, as records; ``authors``: who caused it; ``history_writer``: writes them, before the
  slices change.
* ``logging_executor``: carries plans out, receivers before givers.
* ``placement_cache``: what is kept from one reconcile to the next; ``running``: the part that
  holds need.
* ``status_pace``: statuses after the slices. ``controller``: wiring.

A placement without guards and without Rollout passes through ``decide`` alone. With them its plan
grows at the front: first the finalizer of guards, then the record of the decision, then what lets
somebody go, in the placement's book and the Rollout's status, then slices. Each of these can be the
last thing a process does: what was written first never permits less than what follows, so whoever
comes next may go on or ask again. Where the server takes atomic batches, the record and the slices
are written at once.

One placement loses a Location to a changed label. What a process leaves to the next one if it dies
after each line, where guards, history and a Rollout all have a part in it:

    the index has it            nothing; the next process builds its index from lists
    the decision is recorded    a record that no slice has followed; the next plan finds it by name
    the book is charged         a charge for a destination that is still there; it is counted once
    the Rollout's status says   a destination on its way out that its slice still has; it goes then
    its slice is written        the goal

The four loops have queues of their own, because a slice is what everybody else waits for:

    edge-scheduler              a placement: slices, and all that is written before them
    edge-scheduler-status       a placement: what its status says of the search; after its slices
    edge-scheduler-consent      an inventory workspace: its LocationConsent and its grants' status
    edge-scheduler-guards       a PlacementGuard: its status

None of them takes a key before every informer has been read to its end. Workspaces are the
exception: they are not watched before something asks for their labels or paths, so whoever depends
on them passes until they have been read, and all of those are enqueued then.

Event handlers run whether or not this process leads; the loops run only while it does. So the index
of a standby is as new as the leader's. ``run`` forgets what another leader may have changed behind
it: which destinations run, which confirmations were taken, how chains of records end.
"""
