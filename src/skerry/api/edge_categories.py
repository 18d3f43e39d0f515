"""How far objects of a type travel: to the mailbox, on to the edge, or nowhere."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from skerry.api.edge import CENTRAL_GROUPS
from skerry.api.kinds import GroupResource


class Category(Enum):
    """What becomes of objects of a type."""

    # They would act on the hub itself, so their copies must be without effect there.
    DENATURED = "denatured in the mailbox"
    # They do the same in the mailbox as at the edge: make room, or define a type.
    NATURED = "natured in both"
    MAILBOX_ONLY = "mailbox only"
    UNSUPPORTED = "unsupported"
    NOT_FOR_EDGE = "not for the edge"
    REGULAR = "regular"

    @property
    def to_mailbox(self) -> bool:
        return self not in (Category.UNSUPPORTED, Category.NOT_FOR_EDGE)

    @property
    def to_edge(self) -> bool:
        return self.to_mailbox and self is not Category.MAILBOX_ONLY


_RESOURCES: Mapping[Category, Mapping[str, str]] = {
    Category.DENATURED: {
        "admissionregistration.k8s.io": (
            "mutatingwebhookconfigurations validatingwebhookconfigurations "
            "validatingadmissionpolicies validatingadmissionpolicybindings"
        ),
        "flowcontrol.apiserver.k8s.io": "flowschemas prioritylevelconfigurations",
        "rbac.authorization.k8s.io": "clusterroles clusterrolebindings roles rolebindings",
        "": "limitranges resourcequotas serviceaccounts",
    },
    Category.NATURED: {
        "apiextensions.k8s.io": "customresourcedefinitions",
        "": "namespaces",
    },
    Category.MAILBOX_ONLY: {"apis.kcp.io": "apibindings"},
    Category.UNSUPPORTED: {
        "apiregistration.k8s.io": "apiservices",
        "apiresource.kcp.io": "apiresourceimports negotiatedapiresources",
        "apis.kcp.io": "apiconversions",
    },
    Category.NOT_FOR_EDGE: {
        "apis.kcp.io": "apiexports apiexportendpointslices apiresourceschemas",
        "apps": "controllerrevisions",
        "authentication.k8s.io": "tokenreviews selfsubjectreviews",
        "authorization.k8s.io": (
            "localsubjectaccessreviews selfsubjectaccessreviews selfsubjectrulesreviews "
            "subjectaccessreviews"
        ),
        "certificates.k8s.io": "certificatesigningrequests",
        "core.kcp.io": "logicalclusters shards",
        "events.k8s.io": "events",
        "": "bindings componentstatuses events nodes",
    },
}
_TABLE: Mapping[GroupResource, Category] = {
    GroupResource(group, name): category
    for category, groups in _RESOURCES.items()
    for group, names in groups.items()
    for name in names.split()
}


def category_of(resource: GroupResource) -> Category:
    """Return what becomes of objects of a type; anything unheard of is regular."""
    if resource.group in CENTRAL_GROUPS:
        return Category.NOT_FOR_EDGE
    return _TABLE.get(resource, Category.REGULAR)
