"""From *what* and *where* to the contents of mailboxes.

An EdgePlacement says which objects of its workspace are meant (``what``); its slices say which
mailboxes they go to (``where``). ``categories`` knows which types travel how far, ``types`` which
ones a workspace serves and what brings them, ``copies`` what of an object is copied and how a
copy is compared, ``merging`` what happens when several placements want the same thing,
``versions`` at which version, ``configs`` what the syncer is told. ``reference`` puts all of it
together in one plain function, against which everything incremental is tested.

The rules in one place:

* An object goes to a mailbox when a placement with a destination there selects its namespace, or
  names the cluster-scoped object; and when its type travels at all.
* A selected Namespace is ensured with nothing but its name. Its labels and annotations go along
  only when ``nonNamespacedObjects`` names it too; a Namespace that is only named does not go.
* What defines a placed type (an APIBinding, a CustomResourceDefinition) goes along unasked, and
  so does what defines a type that is to come up from the edge.
* Of several workspaces' objects with one name, the newest counts (the highest resourceVersion;
  kcp's are global). Where their copies differ, all placements involved are told.
* One workspace's object that goes to one mailbox by several Locations is customized for the first
  of them by name. Where that makes a difference, the placements are told.
* Nothing withheld is sent, and what was sent before it was withheld is taken back.
"""
