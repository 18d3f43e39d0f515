"""Which objects a list, watch or deletecollection means."""

from __future__ import annotations

from collections.abc import Callable

from skerry.api.errors import BadRequest
from skerry.api.objects import Object
from skerry.logic.machinery.resource import ANY_IDENTITY
from skerry.logic.machinery.selectors import Selector
from skerry.server.codec import Metadata, decode, metadata_of
from skerry.server.request.call import Call
from skerry.server.request.options import ListOptions
from skerry.server.request.visibility import view_of

_METADATA_FIELDS = frozenset({"metadata.name", "metadata.namespace"})


class Selection:
    """Tells whether stored objects match the selectors of a request.

    Labels, names and namespaces need only the metadata; other fields need the whole object.
    """

    def __init__(self, call: Call, options: ListOptions) -> None:
        self._labels = options.labels
        if call.labels:
            self._labels = Selector.parse(f"{call.labels},{options.labels}".rstrip(","))
        self._fields = options.fields
        self._resource = call.resource
        self._name = call.info.name
        self._check_fields(call)
        names = [v for f, op, v in options.fields.terms if f == "metadata.name" and op != "!="]
        # A watch or list of one object, by its path or by the usual field selector.
        self.only_name: str = self._name or (names[0] if names else "")
        # How the keys of such objects end: no name holds a slash.
        self._ending = f"/{self.only_name}" if self.only_name else ""
        self.needs_object = any(
            field not in _METADATA_FIELDS for field, _, _ in options.fields.terms
        )
        # How many conditions an object is compared with, at most.
        self.terms = len(self._labels.requirements) + len(options.fields.terms)
        self._visible = call.visible
        self._sees = view_of(call.user, call.resource.info.group_resource)
        self._prefix = call.prefix if call.resource.identity == ANY_IDENTITY else ""
        self.everything = (
            self._labels.empty
            and not options.fields.terms
            and not self._name
            and call.visible is None
            and self._sees is None
            and not self._prefix
        )
        self._namespace = ""
        if call.info.cluster == "*":
            # One name is many objects there, so no single key can be asked for, and no prefix
            # of keys means one namespace of every cluster.
            self.only_name = ""
            self._namespace = call.namespace
            self.everything = self.everything and not call.namespace

    def _check_fields(self, call: Call) -> None:
        for field, _, _ in self._fields.terms:
            if field in _METADATA_FIELDS or field in call.resource.selectable_fields:
                continue
            info = call.resource.info
            raise BadRequest(
                f'Unable to find "{info.group}/{info.version}, Resource={info.resource}" that '
                f'match label selector "{self._labels}", field selector "{self._fields}": '
                f"field label not supported: {field}"
            )

    def rules_out(self, key: str) -> bool:
        """Tell whether the object with *key* is not meant, whatever is stored there."""
        return not key.endswith(self._ending)

    def matches(
        self,
        value: bytes,
        revision: int,
        metadata: Metadata | None = None,
        *,
        key: str,
        whole: Callable[[], Object] | None = None,
    ) -> bool:
        """Tell whether a stored object is meant.

        *metadata* saves decoding it again, and so does *whole* for all of the object, which is
        only looked at.
        """
        if self.everything:
            return True
        if self.rules_out(key):
            return False
        if self._visible is not None and not self._visible(key):
            return False
        if self._prefix and key[len(self._prefix)] not in "/:":
            # The name of another type begins with the name of this one.
            return False
        if self._sees is not None and not self._sees(value):
            return False
        known = metadata or metadata_of(value)
        if self._namespace and known.namespace != self._namespace:
            return False
        if not self._labels.empty and not self._labels.matches(known.labels):
            return False
        if not self._fields.terms:
            return True
        obj: Object | None = None
        if self.needs_object:
            obj = whole() if whole is not None else decode(value, revision)
        return self._fields.matches(lambda field: self._field(field, known, obj))

    def _field(self, field: str, metadata: Metadata, obj: Object | None) -> str:
        if field == "metadata.name":
            return metadata.name
        if field == "metadata.namespace":
            return metadata.namespace
        return self._resource.selectable_fields[field](obj or {})
