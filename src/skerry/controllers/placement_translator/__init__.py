"""Carries objects from the workspaces of workload owners into mailboxes.

Reads EdgePlacements, SinglePlacementSlices, Customizers and SyncerConfigs through the view of the
edge export, Locations through theirs, mailbox Workspaces in the provider's workspace; and across
all workspaces APIBindings, CustomResourceDefinitions, Namespaces and every type that travels.
Writes copies (label ``edge.kcp.io/projected=yes``), Namespaces for them and SyncerConfig
``the-one`` in mailboxes; ``status.problems``, the condition ``ConflictFree`` and Events of
EdgePlacements. From the first LocationGrant on it reads those, and Workspaces for their paths and
labels, and writes the part of LocationConsents that is about single objects.

``events`` writes what informers and watches (``feeds``) show into the tables of
``logic.fleet.translation`` and marks the rows of ``difference`` that are touched, which enqueues
their mailboxes. ``observe`` evaluates the rows of one mailbox, ``decide`` turns them into a plan,
``executor`` carries it out and is done with the rows. Beside that, ``status`` writes conditions of
placements, ``held`` the report on what grants (``consent``) do not cover, and ``guards`` keeps
copies that too many would go with. ``inputs`` has the informers, ``marking`` says which rows a
change touches, ``records`` what handlers read of an object; ``paths`` and ``contents`` read what
rows wait for, ``startup`` what everything waits for. ``controller`` wires it, ``settings`` is what
can be chosen.

``object_history`` records what is withheld, and what is sent in another form without a Rollout.
For placements with one, ``activity`` knows how busy what they send is, ``cutting`` fixes it
as a revision when it is quiet, ``revision_events`` takes revisions into the tables, and
``sweeping`` removes what nobody names.

Invariants: once quiet, every mailbox holds what ``fleet.translation.reference`` computes, and a
second pass writes nothing. Nothing is removed from a mailbox while something that could justify
it has not been read yet: a workspace's types, its namespaces, the objects of the type in
question, or what a malformed placement means. Objects that are not copies are never removed, nor
is a Namespace that holds one. Where an inventory workspace enforces its grants, nothing comes in
that none of them covers, whatever slices say; a copy that none covers any more is neither changed
nor removed until a person has confirmed its removal. The work done for a change is proportional to
the change.

The way of one ConfigMap whose content has changed, placed at three edges:

    a watch shows it           ``events``: the record is put; one row is marked at three mailboxes
    a mailbox is taken         ``observe``: the row says "update", so the copy is read afresh
    the plan has one Update    ``decide``: the content, on the version that was read
    the write is answered      ``executor``: the row is done, unless it was marked again meanwhile
    the copy comes back        the row is marked once more, says "none", and is done

Nothing here is kept on disk, and nothing has to be. A process that starts reads every watch from
its beginning, marks each row that is or should be in a mailbox, and finds most of them right. One
that died between two writes of a plan leaves rows that differ, and they are what the next one
finds. A write whose answer was lost leaves its row marked: it is evaluated again, as "none" or not.

The loops have queues of their own, so that a report never keeps a copy waiting:

    placement-translator             a mailbox: its copies and its SyncerConfig
    placement-translator-status      a placement: problems, ``ConflictFree``, the book of objects
    placement-translator-consent     an inventory workspace: what is held object by object
    placement-translator-revisions   a placement with a Rollout: whether a revision is to be cut
    placement-translator-history     a placement: DecisionRecords about its objects
"""
