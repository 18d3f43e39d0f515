"""Kinds that are questions: who is this, may they, what may they."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from skerry.api.errors import BadRequest, FieldError, Invalid
from skerry.api.keys import PLAIN
from skerry.api.objects import Object
from skerry.logic.machinery.workspaces.principals import ACCOUNT_PREFIX, CLUSTER_EXTRA
from skerry.server.access import Attributes, Authorizer
from skerry.server.codec import dump
from skerry.server.http.message import Answer, Response
from skerry.server.preparation import prepare
from skerry.server.request.body import decode_options
from skerry.server.request.call import Call, member
from skerry.server.request.options import write_options
from skerry.server.response.negotiate import negotiate_without_tables
from skerry.server.security.authorization import MASTERS, RbacAuthorizer
from skerry.server.user import User, user_info

_AUTHORIZATION = "authorization.k8s.io"
# By which kcp's own components ask one workspace on behalf of another.
_DEEP = "x-kcp-internal-deep-subjectaccessreview"


def received(call: Call) -> Object:
    """Return the review a request carries; its answer is no Table, whoever asks."""
    request = call.request
    negotiate_without_tables(request.headers.get("accept", ""))
    obj = decode_options(request.body, request.headers.get("content-type", ""), call.kind)
    prepare.recognise(call, obj)
    prepare.conform(call, obj, write_options(request, "CreateOptions"))
    return obj


def answered(obj: Object) -> Answer:
    """Return the review with its answer, as if it had been created."""
    obj["metadata"].setdefault("creationTimestamp", None)
    return Response(status=201, body=dump(obj))


class AccessReviews:
    """Answers the four access reviews by asking the authorizer."""

    def __init__(self, authorizer: Authorizer, rbac: RbacAuthorizer) -> None:
        self._authorizer = authorizer
        self._rbac = rbac

    async def subject(self, call: Call) -> Answer:
        """Answer a SubjectAccessReview: may somebody."""
        review = received(call)
        return self._decided(call, review, _subject(call, review), "", deep=_is_deep(call))

    async def local_subject(self, call: Call) -> Answer:
        """Answer a LocalSubjectAccessReview: may somebody, in this namespace."""
        review = received(call)
        attributes = member(review, "spec", "resourceAttributes") or {}
        if attributes.get("namespace") != call.namespace:
            detail = f"must match metadata.namespace {call.namespace!r}"
            error = FieldError.invalid(
                "spec.resourceAttributes.namespace", attributes.get("namespace", ""), detail
            )
            raise Invalid.of(_AUTHORIZATION, call.kind, "", [error])
        return self._decided(call, review, _subject(call, review), call.namespace)

    async def myself(self, call: Call) -> Answer:
        """Answer a SelfSubjectAccessReview: may I."""
        return self._decided(call, received(call), call.user, "")

    def _decided(
        self, call: Call, review: Object, user: User, namespace: str, *, deep: bool = False
    ) -> Answer:
        _refuse_invalid(call, review.get("spec") or {}, myself=user is call.user)
        attributes = _attributes(call, review, namespace)
        if deep:
            attributes = replace(attributes, deep=True)
        decision = self._authorizer.authorize(user, attributes)
        status: dict[str, Any] = {"allowed": decision.allowed}
        if decision.reason:
            status["reason"] = decision.reason
        review["status"] = status
        return answered(review)

    async def my_rules(self, call: Call) -> Answer:
        """Answer a SelfSubjectRulesReview: all I may do in a namespace."""
        review = received(call)
        namespace = member(review, "spec", "namespace") or ""
        if not namespace:
            raise BadRequest("no namespace on request")
        found = self._rbac.rules_for(call.user, call.info.cluster, namespace)
        rules = [rule.to_object() for rule in found.rules]
        review["status"] = {
            "resourceRules": [_resource_rule(r) for r in rules if "resources" in r],
            "nonResourceRules": [
                {"verbs": r["verbs"], "nonResourceURLs": r["nonResourceURLs"]}
                for r in rules
                if "nonResourceURLs" in r
            ],
            "incomplete": bool(found.errors),
        }
        if found.errors:
            review["status"]["evaluationError"] = ", ".join(found.errors)
        return answered(review)


def _resource_rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    names = ("verbs", "apiGroups", "resources", "resourceNames")
    return {name: rule[name] for name in names if name in rule}


def _is_deep(call: Call) -> bool:
    """Tell whether a review is to be answered by RBAC alone, which is for masters to ask."""
    return MASTERS in call.user.groups and call.request.headers.get(_DEEP) == "true"


def _subject(call: Call, review: Object) -> User:
    """Return whom a review asks about, named as in the cluster where it is asked.

    So the plain name of a ServiceAccount is that of the cluster's own, unless it says by its
    extra of which cluster it is, as reviews of its token do.
    """
    spec = review.get("spec") or {}
    extra = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
    groups = tuple(spec.get("groups") or ())
    name, cluster = spec.get("user", ""), call.info.cluster
    home = ""
    if cluster != PLAIN and name.startswith(ACCOUNT_PREFIX):
        home = next(iter(extra.get(CLUSTER_EXTRA) or ()), cluster)
    return User(name, spec.get("uid", ""), groups, extra, home)


def _refuse_invalid(call: Call, spec: Object, *, myself: bool) -> None:
    """Raise unless a review asks about one thing and, but for who asks, about somebody."""
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    errors = []
    if resource and path:
        detail = "cannot be specified in combination with resourceAttributes"
        errors.append(FieldError.invalid("spec.nonResourceAttributes", path, detail))
    if not resource and not path:
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        errors.append(FieldError.invalid("spec.resourceAttributes", None, detail))
    if not myself and not spec.get("user") and not spec.get("groups"):
        detail = "at least one of user or group must be specified"
        errors.append(FieldError.invalid("spec.user", "", detail))
    if errors:
        raise Invalid.of(_AUTHORIZATION, call.kind, "", errors)


def _attributes(call: Call, review: Object, namespace: str) -> Attributes:
    spec = review.get("spec") or {}
    resource: Object = spec.get("resourceAttributes") or {}
    path: Object = spec.get("nonResourceAttributes") or {}
    cluster = call.info.cluster
    if path:
        return Attributes(cluster=cluster, verb=path.get("verb", ""), path=path.get("path", ""))
    return Attributes(
        cluster=cluster,
        verb=resource.get("verb", ""),
        group=resource.get("group", ""),
        version=resource.get("version", ""),
        resource=resource.get("resource", ""),
        subresource=resource.get("subresource", ""),
        namespace=namespace or resource.get("namespace", ""),
        name=resource.get("name", ""),
    )


async def whoami(call: Call) -> Answer:
    """Answer a SelfSubjectReview: who am I."""
    review = received(call)
    review["status"] = {"userInfo": user_info(call.user)}
    return answered(review)
