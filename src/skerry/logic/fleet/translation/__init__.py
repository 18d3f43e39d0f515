"""From *what* and *where* to the contents of mailboxes: the tables between slices and copies.

An EdgePlacement says which objects of its workspace are meant (``what``); its slices say which
mailboxes they go to (``where``). In the order in which they derive from each other:

* ``sources``: the input tables of objects, in workspaces of owners and in mailboxes alike;
  ``workspaces``: which kinds each workspace serves and which watch shows them.
* ``selected``: what a placement selects. ``route``: to which mailboxes that goes, and by which
  Locations. ``desired``: what it is to be there (``merging``; ``ownership`` and ``holders`` where
  several want one name; ``configs`` for the SyncerConfig).
  ``difference``: what has to happen; ``dirty`` has the rows that are to be evaluated.
* ``reference``: all of it from the inputs alone (``reference_inputs``), in one plain function.
  Everything incremental is compared with it.
* Under a Rollout ``manifest`` is what a placement sends, fixed; ``held`` puts what a revision says
  in place of what the workspace has now.

``categories`` knows which kinds travel how far, ``types`` which ones a workspace serves and at
which version they are written, ``copies`` what of an object is copied and how a copy is compared
(``source_generation``: of which generation it was made), ``rows`` what a row of ``desired`` says,
``grants`` what an inventory workspace lets through.

The rules in one place:

* An object goes to a mailbox when a placement with a destination there selects its namespace, or
  names the cluster-scoped object; and when its type travels at all.
* A selected Namespace is ensured with nothing but its name. Its labels and annotations go along
  only when ``nonNamespacedObjects`` names it too; a Namespace that is only named does not go.
* What defines a placed type (an APIBinding, a CustomResourceDefinition) goes along unasked, and
  so does what defines a type that is to come up from the edge.
* Of several workspaces' objects with one name, that of the first counts, which the copy records
  (``ownership``). Where the others' differ, they are withheld and their placements hear whose the
  name is. A Namespace is shared; its labels are those of the first who named it.
* One workspace's object that goes to one mailbox by several Locations is customized for the first
  of them by name. Where that makes a difference, it is reported.
* Nothing withheld is sent, and what was sent before it was withheld is taken back.
* Nothing is removed because of what has not been read, or of a placement that is malformed.
"""
