"""The whole fleet on one screen: every edge and every placement, the worst first.

``rows`` reads one SyncTarget or EdgePlacement into a row of a few dozen bytes; ``overview`` keeps
the rows while objects come, change and go, counts them, and says which come first; ``text`` writes
them in columns.

Promises: pure. Nothing is judged here that the hub has not judged: rows repeat what conditions and
counts say, so that this screen, ``kubectl get`` and the events never disagree. What the hub has not
said yet is shown as not said, never as well.
"""
