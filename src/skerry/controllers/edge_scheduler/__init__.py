"""Answers each EdgePlacement with the destinations its selectors mean.

Reads EdgePlacements and SinglePlacementSlices in the view of the provider's export
``edge.kcp.io``, Locations and SyncTargets in the views of root's exports, and Workspaces once a
placement asks for their labels or a LocationGrant for their paths. Writes slices, the placements'
status, and for each inventory workspace with grants their status and its LocationConsent.

Invariants: the slices of a placement, read together, hold exactly the destinations the index
gives, in order, and belong to it; whoever edits or deletes one sees it restored. A slice is
written only when it differs. An invalid selector changes no slice at all: what was placed stays,
and a condition tells. A placement that is gone keeps its slices until the garbage collector,
which looks at the owner itself, takes them.

Where an inventory workspace enforces its grants, no destination comes in that none of them admits,
and none that is in the slices goes for the lack of a grant until a person has confirmed that.

The work is proportional to the change: a handler puts what it was told into the index, which
answers with the placements touched; those are the keys.
"""
