"""Conversion by a webhook: what is asked, and what an answer must be like to be believed.

Conversions happen deep inside of pure functions (comparing, merging, showing), and a webhook is far
away. So ``convert`` only looks an answer up among those that were fetched for the request; where
one is missing it stops with ``ConversionNeeded``, and whoever runs the request fetches it and
begins again. Results do not depend on how often that happens.

A webhook may change everything of an object but what tells it from others, and of its metadata the
labels and annotations. The sentences are kube-apiserver's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

import orjson

from skerry.api.objects import Object
from skerry.logic.machinery.patch.values import json_kind
from skerry.logic.machinery.reviews import ReviewError, type_of_review
from skerry.logic.machinery.selectors import label_errors
from skerry.logic.machinery.webhook_clients import ClientConfig

_GROUP: Final = "apiextensions.k8s.io"
_REVIEW: Final = "ConversionReview"

# What was fetched for the request under way: by version and by the object asked about.
Fetched = dict[tuple[str, bytes], bytes]
FETCHED: Final[ContextVar[Fetched | None]] = ContextVar("conversions", default=None)


class ConversionFailed(Exception):
    """A webhook did not convert; the text says why."""


@dataclass(frozen=True, slots=True)
class ConversionWebhook:
    """Who converts the objects of a definition, and the version of reviews it understands."""

    client: ClientConfig
    version: str

    def convert(self, obj: Object, version: str) -> Object:
        """Return *obj* at *version* of its group; raises ``ConversionNeeded`` to be asked again."""
        group = str(obj["apiVersion"]).rpartition("/")[0]
        wanted = f"{group}/{version}"
        if obj["apiVersion"] == wanted:
            return obj
        known = FETCHED.get()
        found = None if known is None else known.get((wanted, orjson.dumps(obj)))
        if found is None:
            raise ConversionNeeded(self, obj, wanted)
        converted: Object = orjson.loads(found)
        return converted


class ConversionNeeded(Exception):
    """An object must be converted before what was begun can be done."""

    def __init__(self, webhook: ConversionWebhook, obj: Object, api_version: str) -> None:
        super().__init__(f"conversion to {api_version} is needed")
        self.webhook = webhook
        self.obj = obj
        self.api_version = api_version


def request_of(
    webhook: ConversionWebhook, uid: str, api_version: str, objects: Sequence[Object]
) -> bytes:
    """Return the ConversionReview that asks for *objects* at *api_version*."""
    asked = {"uid": uid, "desiredAPIVersion": api_version, "objects": objects}
    version = f"{_GROUP}/{webhook.version}"
    return orjson.dumps({"kind": _REVIEW, "apiVersion": version, "request": asked})


def failure_of(obj: Object, why: str) -> ConversionFailed:
    """Return the failure to convert *obj* and those that were sent with it."""
    return ConversionFailed(f"conversion webhook for {_shown(obj)} {why}")


def _shown(obj: Object) -> str:
    return f"{obj['apiVersion']}, Kind={obj['kind']}"


def objects_of(
    webhook: ConversionWebhook, uid: str, api_version: str, sent: Sequence[Object], answer: Any
) -> list[Object]:
    """Return what *answer* makes of *sent*; raises ``ConversionFailed`` if it is something else."""
    first = sent[0]
    try:
        found = _converted(webhook, uid, answer)
    except ConversionFailed as error:
        raise failure_of(first, f"failed: {error}") from error
    if len(found) != len(sent):
        raise failure_of(first, f"returned {len(found)} objects, expected {len(sent)}")
    for index, (obj, before) in enumerate(zip(found, sent, strict=True)):
        if not isinstance(obj, dict):
            why = f"json: cannot unmarshal {json_kind(obj)} into Go value of type"
            raise ConversionFailed(f"{why} map[string]interface {{}}")
        _check(obj, before, index, api_version)
    return [_restored(obj, before) for obj, before in zip(found, sent, strict=True)]


def _converted(webhook: ConversionWebhook, uid: str, answer: Any) -> Sequence[Any]:
    """Return what a review brings, if it is one, the right one, and says that it succeeded."""
    try:
        version, kind = type_of_review(answer, _GROUP, _REVIEW, webhook.version)
    except ReviewError as error:
        raise ConversionFailed(str(error)) from error
    wanted = f"{_GROUP}/{webhook.version}"
    response = answer.get("response")
    if not isinstance(response, dict):
        raise ConversionFailed("no response provided")
    if webhook.version == "v1":
        said = _text(response.get("uid"))
        if said != uid:
            raise ConversionFailed(f'expected response.uid="{uid}", got "{said[:256]}"')
        if (version, kind) != (wanted, _REVIEW):
            shown = f"{version or '/'}, Kind={kind}"
            why = f"expected webhook response of {wanted}, Kind={_REVIEW}, got {shown}"
            raise ConversionFailed(why)
    result = _mapping(response.get("result"))
    status = _text(result.get("status"))
    if status != "Success":
        message = _text(result.get("message"))[:2048]
        raise ConversionFailed(message or f"response.result.status was '{status}', not 'Success'")
    found = response.get("convertedObjects")
    return found if isinstance(found, list) else ()


def _check(obj: Object, before: Object, index: int, api_version: str) -> None:
    """Refuse an object that is not *before* at another version."""
    place = f"returned invalid object at index {index}: invalid"
    if obj.get("apiVersion") != api_version:
        received = _text(obj.get("apiVersion"))
        raise failure_of(
            before, f"{place} groupVersion (expected {api_version}, received {received})"
        )
    if obj.get("kind") != before["kind"]:
        received = _text(obj.get("kind"))
        raise failure_of(before, f"{place} kind (expected {before['kind']}, received {received})")
    metadata = _mapping(obj.get("metadata"))
    for name, shown in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        was, now = (_text(each.get(name)) for each in (before["metadata"], metadata))
        if was != now:
            why = f"must have the same {shown}: {was} != {now}"
            raise failure_of(before, f"returned invalid object: {why}")


def _restored(obj: Object, before: Object) -> Object:
    """Return *obj* with the metadata of *before*, but for labels and annotations."""
    metadata = dict(before["metadata"])
    for name in ("labels", "annotations"):
        given = obj["metadata"].get(name)
        metadata.pop(name, None)
        if given:
            metadata[name] = _texts(before, given, name)
    wrong = label_errors(metadata.get("labels") or {}, "metadata.labels")
    if wrong:
        shown = ", ".join(map(str, wrong))
        why = f"[{shown}]" if len(wrong) > 1 else shown
        raise failure_of(before, f"returned invalid metadata: {why}")
    return {**obj, "metadata": metadata}


def _texts(before: Object, given: Any, name: str) -> Mapping[str, str]:
    if isinstance(given, dict) and all(isinstance(each, str) for each in given.values()):
        return given
    raise failure_of(before, f"returned invalid metadata: metadata.{name}: want a map of strings")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
