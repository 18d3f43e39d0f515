"""Revisions: what a placement with a Rollout sends, fixed at moments, over shared contents.

* ``manifest``: which objects a revision has, each by its digest; and the digest of all of it.
* ``objects``: manifests and contents as PlacementRevisions and RevisionContents.
* ``cut``: when a revision is cut, and which number it gets.
* ``causes``: what is different from the revision before.
* ``table``: the manifests that are known, and the contents that were read.
* ``retention``: what may go.
* ``noted``: which revision a mailbox is at, as its SyncerConfig tells.

A revision holds sources and Customizers, never what comes of them at a destination; and nothing
of where. Whoever writes keeps an order: contents, then the manifest, then the slices that name it;
what goes, goes the other way round. So a name that is met leads somewhere, and whoever meets one
that does not waits: it changes nothing and removes nothing.
"""
