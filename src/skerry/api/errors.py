"""Failures as Kubernetes tells them: one exception per Status reason somebody handles.

An ``ApiError`` carries everything a ``Status`` object needs; ``status()`` renders it. The same
classes are raised by the server and by the client that read the answer, so a controller and the
engine speak of failure in the same words.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skerry.kit.text import float_text, shortened

# What of a request a Status repeats. Names of Kubernetes have at most 253 characters; a message is
# for people, and what does not fit a screen says nothing more.
_NAME_LIMIT = 512
_MESSAGE_LIMIT = 8192
_CAUSE_LIMIT = 1024
_MAX_CAUSES = 100
_VALUE_LIMIT = 1024
_DEPTH_LIMIT = 32


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing wrong with one field, in the words of Kubernetes' field errors.

    ``type`` is the cause's reason: FieldValueRequired, FieldValueInvalid, FieldValueNotSupported,
    FieldValueDuplicate, FieldValueForbidden, FieldValueTooLong, FieldValueTooMany,
    FieldValueTypeInvalid, FieldValueNotFound, InternalError.
    """

    type: str
    field: str
    message: str

    @classmethod
    def required(cls, field: str, detail: str = "") -> FieldError:
        return cls("FieldValueRequired", field, _joined("Required value", detail))

    @classmethod
    def invalid(cls, field: str, value: object, detail: str) -> FieldError:
        return cls("FieldValueInvalid", field, f"Invalid value: {shown(value)}: {detail}")

    @classmethod
    def type_invalid(cls, field: str, value: object, detail: str) -> FieldError:
        return cls("FieldValueTypeInvalid", field, f"Invalid value: {shown(value)}: {detail}")

    @classmethod
    def not_supported(cls, field: str, value: object, supported: Sequence[str]) -> FieldError:
        wanted = ", ".join(f'"{item}"' for item in sorted(supported))
        text = f"Unsupported value: {shown(value)}: supported values: {wanted}"
        return cls("FieldValueNotSupported", field, text)

    @classmethod
    def duplicate(cls, field: str, value: object) -> FieldError:
        return cls("FieldValueDuplicate", field, f"Duplicate value: {shown(value)}")

    @classmethod
    def forbidden(cls, field: str, detail: str) -> FieldError:
        return cls("FieldValueForbidden", field, f"Forbidden: {detail}")

    @classmethod
    def too_long(cls, field: str, maximum: int) -> FieldError:
        return cls("FieldValueTooLong", field, f"Too long: may not be more than {maximum} bytes")

    @classmethod
    def too_many(cls, field: str, actual: int, maximum: int) -> FieldError:
        text = f"Too many: {actual}: must have at most {maximum} items"
        return cls("FieldValueTooMany", field, text)

    @classmethod
    def not_found(cls, field: str, value: object) -> FieldError:
        return cls("FieldValueNotFound", field, f"Not found: {shown(value)}")

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def _bounded(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return the details of a Status, every text in them cut to its limit."""
    bounded = {
        key: shortened(value, _NAME_LIMIT) if isinstance(value, str) else value
        for key, value in details.items()
    }
    if "causes" in details:
        bounded["causes"] = [
            {key: shortened(str(value), _CAUSE_LIMIT) for key, value in cause.items()}
            for cause in details["causes"]
        ]
    return bounded


def shown(value: object) -> str:
    """Return *value* as Kubernetes prints it inside a field error, cut where it is long.

    The work is bounded like the text: a large object that many errors show is not walked through
    by each of them.
    """
    pieces: list[str] = []
    left = _VALUE_LIMIT
    for piece in _pieces(value):
        pieces.append(piece[: left + 1])
        left -= len(piece)
        if left < 0:
            return "".join(pieces)[:_VALUE_LIMIT] + "..."
    return "".join(pieces)


def _pieces(value: object, depth: int = 0) -> Iterator[str]:
    """Yield the text of *value* in pieces that are each in proportion to the limit."""
    if depth > _DEPTH_LIMIT:
        yield "..."
    elif isinstance(value, str):
        if len(value) > _VALUE_LIMIT:
            value = value[: _VALUE_LIMIT + 1]
        yield _quoted(value)
    elif isinstance(value, Mapping):
        yield "{"
        for index, key in enumerate(_first_sorted(value)):
            yield f"{',' if index else ''}{_quoted(str(key)[: _VALUE_LIMIT + 1])}:"
            yield from _pieces(value[key], depth + 1)
        yield "}"
    elif isinstance(value, Sequence):
        yield "["
        for index, item in enumerate(value):
            if index:
                yield ","
            yield from _pieces(item, depth + 1)
        yield "]"
    else:
        yield _scalar(value)


def _first_sorted(value: Mapping[Any, object]) -> Sequence[Any]:
    """Return the keys in order, of a very large object only as many as may be shown."""
    return sorted(value) if len(value) <= _VALUE_LIMIT else heapq.nsmallest(_VALUE_LIMIT, value)


def _scalar(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return float_text(value) if isinstance(value, float) else str(value)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _joined(head: str, detail: str) -> str:
    return f"{head}: {detail}" if detail else head


class ApiError(Exception):
    """A failure with a Status; subclasses fix the code and the reason."""

    code: int = 500
    reason: str = "InternalError"

    def __init__(
        self,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details: dict[str, Any] = dict(details or {})
        self.headers: dict[str, str] = dict(headers or {})
        # What was noticed about the request besides.
        self.warnings: list[str] = []

    def status(self) -> dict[str, Any]:
        """Return the ``v1`` Status object that tells a client of this failure."""
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": shortened(self.message, _MESSAGE_LIMIT),
            "reason": self.reason,
        }
        if not self.reason:
            del body["reason"]
        if self.details:
            body["details"] = _bounded(self.details)
        body["code"] = self.code
        return body


class BadRequest(ApiError):
    code, reason = 400, "BadRequest"


class Unauthorized(ApiError):
    code, reason = 401, "Unauthorized"

    def __init__(self, message: str = "Unauthorized") -> None:
        super().__init__(message)


class Forbidden(ApiError):
    code, reason = 403, "Forbidden"

    @classmethod
    def of(cls, group: str, resource: str, name: str, why: str) -> Forbidden:
        """Say that *why* forbids acting on one named object, as admission does."""
        which = f'{qualified(group, resource)} "{name}"' if name else qualified(group, resource)
        text = f"{which} is forbidden: {why}"
        return cls(text, details=named(group, resource, name))


class NotFound(ApiError):
    code, reason = 404, "NotFound"

    @classmethod
    def of(cls, group: str, resource: str, name: str) -> NotFound:
        text = f'{qualified(group, resource)} "{name}" not found'
        return cls(text, details=named(group, resource, name))

    @classmethod
    def path(cls) -> NotFound:
        """Say that no such resource type or path is served."""
        return cls("the server could not find the requested resource")


class PageNotFound(NotFound):
    """Nobody serves anything below a path. It is said in plain text: clients go by the code."""

    plain = b"404 page not found\n"


class MethodNotAllowed(ApiError):
    code, reason = 405, "MethodNotAllowed"

    def __init__(
        self, message: str = "the server does not allow this method on the requested resource"
    ) -> None:
        super().__init__(message)


class NotAcceptable(ApiError):
    code, reason = 406, "NotAcceptable"


class AlreadyExists(ApiError):
    code, reason = 409, "AlreadyExists"

    @classmethod
    def of(cls, group: str, resource: str, name: str) -> AlreadyExists:
        text = f'{qualified(group, resource)} "{name}" already exists'
        return cls(text, details=named(group, resource, name))


class Conflict(ApiError):
    code, reason = 409, "Conflict"

    @classmethod
    def of(cls, group: str, resource: str, name: str, why: str) -> Conflict:
        text = f'Operation cannot be fulfilled on {qualified(group, resource)} "{name}": {why}'
        return cls(text, details=named(group, resource, name))

    @classmethod
    def stale(cls, group: str, resource: str, name: str) -> Conflict:
        return cls.of(
            group,
            resource,
            name,
            "the object has been modified; please apply your changes to the latest version "
            "and try again",
        )


class Gone(ApiError):
    """The past that was asked for is no longer kept (reason Expired)."""

    code, reason = 410, "Expired"

    def __init__(
        self, message: str, *, proceed: str = "", details: Mapping[str, Any] | None = None
    ) -> None:
        """*proceed* is a token by which a list goes on all the same, in another snapshot."""
        super().__init__(message, details=details)
        self._proceed = proceed

    def status(self) -> dict[str, Any]:
        body = super().status()
        if self._proceed:
            body["metadata"] = {"continue": self._proceed}
        return body


class RequestEntityTooLarge(ApiError):
    code, reason = 413, "RequestEntityTooLarge"


class UnsupportedMediaType(ApiError):
    code, reason = 415, "UnsupportedMediaType"


class Invalid(ApiError):
    code, reason = 422, "Invalid"

    @classmethod
    def of(cls, group: str, kind: str, name: str, errors: Sequence[FieldError]) -> Invalid:
        """Say everything that is wrong with one object, in the order it was found."""
        count, errors = len(errors), errors[:_MAX_CAUSES]
        listed = ", ".join(dict.fromkeys(str(error) for error in errors))
        if count > len(errors):
            listed += f", and {count - len(errors)} more errors"
        if count > 1:
            listed = f"[{listed}]"
        text = f'{kind}{"." + group if group else ""} "{name}" is invalid: {listed}'
        details: dict[str, Any] = {
            "name": name,
            "group": group,
            "kind": kind,
            "causes": [
                {"reason": error.type, "message": error.message, "field": error.field}
                for error in errors
            ],
        }
        if not group:
            del details["group"]
        return cls(text, details=details)


class TooManyRequests(ApiError):
    code, reason = 429, "TooManyRequests"

    def __init__(self, message: str, retry_after_seconds: int = 1) -> None:
        super().__init__(
            message,
            details={"retryAfterSeconds": retry_after_seconds},
            headers={"Retry-After": str(retry_after_seconds)},
        )


class InternalError(ApiError):
    code, reason = 500, "InternalError"

    @classmethod
    def of(cls, why: str) -> InternalError:
        """Say that *why* kept the server from doing its part, as Kubernetes says it."""
        return cls(f"Internal error occurred: {why}", details={"causes": [{"message": why}]})


class Denied(ApiError):
    """A refusal in somebody else's words, with whatever code and reason they gave it."""

    def __init__(self, code: int, reason: str, message: str, details: Mapping[str, Any]) -> None:
        super().__init__(message, details=details)
        self.code, self.reason = code, reason


class TypedPatchError(ApiError):
    """An applied configuration that cannot be read; kube-apiserver gives no reason either."""

    code, reason = 500, ""


class ServiceUnavailable(ApiError):
    code, reason = 503, "ServiceUnavailable"


class Timeout(ApiError):
    code, reason = 504, "Timeout"


def qualified(group: str, resource: str) -> str:
    """Return ``resource.group``, or the bare resource in the core group."""
    return f"{resource}.{group}" if group else resource


def named(group: str, resource: str, name: str) -> dict[str, Any]:
    """Return the ``details`` that name one object."""
    details: dict[str, Any] = {"name": name, "group": group, "kind": resource}
    if not group:
        del details["group"]
    return details


_BY_REASON: dict[str, type[ApiError]] = {
    cls.reason: cls
    for cls in (
        BadRequest,
        Unauthorized,
        Forbidden,
        NotFound,
        MethodNotAllowed,
        NotAcceptable,
        AlreadyExists,
        Conflict,
        Gone,
        RequestEntityTooLarge,
        UnsupportedMediaType,
        Invalid,
        TooManyRequests,
        InternalError,
        ServiceUnavailable,
        Timeout,
    )
}
_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    406: NotAcceptable,
    409: Conflict,
    410: Gone,
    413: RequestEntityTooLarge,
    415: UnsupportedMediaType,
    422: Invalid,
    429: TooManyRequests,
    500: InternalError,
    503: ServiceUnavailable,
    504: Timeout,
}


def from_status(code: int, status: Mapping[str, Any]) -> ApiError:
    """Return the exception a server's Status (or bare code) stands for."""
    reason = str(status.get("reason", ""))
    if reason == "Gone":
        reason = "Expired"
    cls = _BY_REASON.get(reason) or _BY_CODE.get(code, ApiError)
    error = cls.__new__(cls)
    ApiError.__init__(
        error, str(status.get("message", f"HTTP {code}")), details=status.get("details") or {}
    )
    return error
