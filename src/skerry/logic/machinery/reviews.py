"""The reviews that webhooks answer with: is this one, of the version that was sent?

Admission and conversion ask alike: an object of a group's ``…Review`` kind goes out, and one of the
same version comes back. What is left out counts as what was sent. The sentences are
kube-apiserver's.
"""

from __future__ import annotations

from typing import Any, Final

from skerry.logic.machinery.type_meta import NO_TYPE, no_object

# The versions there are of either kind of review.
REVIEW_VERSIONS: Final = ("v1", "v1beta1")
_SCHEME: Final = 'in scheme "pkg/runtime/scheme.go:100"'


class ReviewError(Exception):
    """An answer is no review of the version that was sent; the text says why."""


def type_of_review(answer: Any, group: str, review: str, version: str) -> tuple[str, str]:
    """Return ``apiVersion`` and ``kind`` that *answer* gives, each perhaps empty.

    *review* is the kind that was sent, at *version* of *group*; raises ``ReviewError`` for another.
    """
    if not isinstance(answer, dict):
        raise ReviewError(no_object(answer))
    given, kind = answer.get("apiVersion") or "", answer.get("kind") or ""
    if not isinstance(given, str) or not isinstance(kind, str):
        raise ReviewError(NO_TYPE)
    wanted = f"{group}/{version}"
    known = [f"{group}/{each}" for each in REVIEW_VERSIONS]
    if (given or wanted) not in known or (kind or review) != review:
        named = f'"{kind or review}" is registered for version "{given or wanted}"'
        raise ReviewError(f"no kind {named} {_SCHEME}")
    if given and given != wanted:
        other = given.rpartition("/")[2]
        names = f"({other}.{review}) to ({version}.{review})"
        raise ReviewError(f"converting {names}: unknown conversion")
    return given, kind
