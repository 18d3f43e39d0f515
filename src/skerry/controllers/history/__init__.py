"""Keeps the history of placements within bounds: checkpoints, and what they let go.

Reads DecisionRecords in the view of the provider's export, workspace by workspace, and
EdgePlacements, which say how long theirs are kept. Writes checkpoints, deletes what they stand for.

Invariants: nothing is deleted before a checkpoint that stands for it is in the store, so no answer
about a time after the checkpoint changes. A history that cannot be read as a whole is left alone.
The newest checkpoint of a placement is never deleted while it keeps a history.

No informer: a million records would be a million objects in memory, for a question that is asked
once an hour. Only the leader asks.
"""
