"""Server-side apply: who owns which field, what an apply changes, and when owners disagree.

- ``fieldset``: sets of fields, kept in the very form they travel in (FieldsV1).
- ``typed``: what of an object counts as a field, and which fields differ between two objects.
- ``merge``: an applied configuration merged into an object; fields taken out of one.
- ``check``: an applied configuration held against its schema.
- ``managed``: ``metadata.managedFields``, its entries and their order and number.
- ``update``: the two operations, ``track_update`` and ``apply``.

The semantics are those of Kubernetes 1.32 (structured-merge-diff v4). Objects come in and go out as
dicts; nothing that comes in is changed, and what comes out shares what did not change.
"""

from skerry.logic.machinery.apply.managed import manager_name
from skerry.logic.machinery.apply.update import ApplyResult, WriteTerms, apply, track_update

__all__ = ["ApplyResult", "WriteTerms", "apply", "manager_name", "track_update"]
