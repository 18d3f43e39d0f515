"""Who last changed an object, as the server knows it, in an annotation that nobody else can set.

For the types that it is given; a write of any other costs nothing. A change of spec or labels, the
creation, and a person's word given by one of some annotations are somebody's; any other write
leaves the annotation as it was, whatever the client sent. Of a deletion nothing is left to
annotate: the audit log has its user.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import orjson

from skerry.api.objects import Object, labels_of
from skerry.kit.ids import IdSource
from skerry.server.admission.operation import Operation
from skerry.server.request.call import Call

# Beyond this the name of a user is cut: it comes from somebody else's identity provider.
_MAX_USER = 256
_NOT_AUTHORED = ("apiVersion", "kind", "metadata", "status")


class Authorship:
    """Keeps the annotation *key* on objects of *types*."""

    def __init__(
        self,
        key: str,
        types: Collection[tuple[str, str]],
        ids: IdSource,
        is_excepted: Callable[[str], bool],
        words: Collection[str] = (),
    ) -> None:
        """*is_excepted* tells of which logical clusters nothing is kept.

        *words* are annotations by which people say something; to take one off says nothing.
        """
        self._words = tuple(words)
        self.TYPES = frozenset(types)
        self._key = key
        self._ids = ids
        self._is_excepted = is_excepted

    async def admit(self, operation: Operation) -> None:
        if operation.verb == "DELETE" or operation.subresource:
            return
        if operation.type not in self.TYPES or self._is_excepted(operation.call.info.cluster):
            return
        old = operation.old
        said: str | None
        if old is None or _authored(old) != _authored(operation.obj) or self._says(operation):
            said = self._author(operation.call)
        else:
            said = (old["metadata"].get("annotations") or {}).get(self._key)
        self._set(operation.obj["metadata"], said)

    def _says(self, operation: Operation) -> bool:
        """Tell whether somebody gives their word by this write."""
        new = operation.obj["metadata"].get("annotations") or {}
        old = (operation.old or {}).get("metadata", {}).get("annotations") or {}
        return any(each in new and new[each] != old.get(each) for each in self._words)

    def _set(self, metadata: Object, said: str | None) -> None:
        annotations = metadata.get("annotations") or {}
        if annotations.get(self._key) == said:
            return
        if said is None:
            metadata["annotations"] = {
                key: value for key, value in annotations.items() if key != self._key
            }
        else:
            metadata["annotations"] = {**annotations, self._key: said}

    def _author(self, call: Call) -> str:
        said = {"user": call.user.name[:_MAX_USER]}
        request = call.request
        if "audit-id" not in request.headers:
            # One that the client chose proves nothing.
            request.audit_id = request.audit_id or self._ids.uid()
            said["auditID"] = request.audit_id
        return orjson.dumps(said).decode()


def _authored(obj: Object) -> tuple[object, ...]:
    """Return what of an object is its author's: its content and its labels."""
    own = {key: obj[key] for key in obj if key not in _NOT_AUTHORED}
    return own, labels_of(obj)
