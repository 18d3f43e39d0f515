"""Who may read the pages of the scheduler's own port.

Everything but health asks the API server who the caller is (TokenReview) and whether the caller
may read the path (SubjectAccessReview), as kube-scheduler's secure port does.
"""

from __future__ import annotations

from collections.abc import Mapping

from skerry.api.errors import ApiError
from skerry.api.kinds import GroupVersionResource
from skerry.runtime.client import Client
from skerry.runtime.health import Authorize
from skerry.runtime.transport import TransportError

_TOKEN_REVIEWS = GroupVersionResource("authentication.k8s.io", "v1", "tokenreviews")
_ACCESS_REVIEWS = GroupVersionResource("authorization.k8s.io", "v1", "subjectaccessreviews")


def delegated(client: Client, access: Client | None = None) -> Authorize:
    """Return an authorizer that asks the API server on every request.

    *access* answers what a caller may do, where that is another server than knows the callers.
    """
    access = access or client

    async def authorize(token: str, verb: str, path: str) -> int:
        user = await _reviewed_user(client, token) if token else None
        if token and user is None:
            return 401
        spec: dict[str, object] = {
            "nonResourceAttributes": {"path": path, "verb": verb},
            "user": "system:anonymous",
            "groups": ["system:unauthenticated"],
        }
        if user is not None:
            spec |= {"user": user.get("username", ""), "groups": user.get("groups") or []}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "metadata": {},
            "spec": spec,
        }
        try:
            answer = await access.create(_ACCESS_REVIEWS, review)
        except (ApiError, TransportError):
            return 403
        return 200 if (answer.get("status") or {}).get("allowed") else 403

    return authorize


async def _reviewed_user(client: Client, token: str) -> Mapping[str, object] | None:
    review = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "metadata": {},
        "spec": {"token": token},
    }
    try:
        answer = await client.create(_TOKEN_REVIEWS, review)
    except (ApiError, TransportError):
        return None
    status = answer.get("status") or {}
    found: Mapping[str, object] | None = status.get("user")
    return found if status.get("authenticated") else None
