"""What Kubernetes' own signers sign: for whom, for which use, and for how long."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

CLIENT: Final = "kubernetes.io/kube-apiserver-client"
KUBELET_CLIENT: Final = "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING: Final = "kubernetes.io/kubelet-serving"
SIGNERS: Final = frozenset((CLIENT, KUBELET_CLIENT, KUBELET_SERVING))
BACKDATED: Final = timedelta(minutes=5)

_MAX_LIFETIME: Final = timedelta(days=365)
_MIN_LIFETIME: Final = timedelta(minutes=10)
# What lives no longer than this ends as late as it would if it had not been backdated.
_SHORT: Final = timedelta(hours=8)
_NODES: Final = "system:nodes"
_NODE: Final = "system:node:"
_SIGNATURE, _ENCIPHERMENT = "digital signature", "key encipherment"


@dataclass(frozen=True, slots=True)
class Subject:
    """Whom a request asks a certificate for."""

    common_name: str = ""
    organizations: tuple[str, ...] = ()
    dns_names: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    emails: tuple[str, ...] = ()
    uris: tuple[str, ...] = ()


def refusal(signer: str, subject: Subject, usages: Collection[str]) -> str:
    """Return why *signer* signs no such certificate, in Kubernetes' words; empty if it does."""
    if signer == CLIENT:
        return _client_refusal(usages)
    serving = signer == KUBELET_SERVING
    if subject.organizations != (_NODES,):
        return "subject organization is not system:nodes"
    if serving and not (subject.dns_names or subject.addresses):
        return "DNS or IP subjectAltName is required"
    unwanted = (
        ("DNS", () if serving else subject.dns_names),
        ("Email", subject.emails),
        ("IP", () if serving else subject.addresses),
        ("URI", subject.uris),
    )
    for name, values in unwanted:
        if values:
            return f"{name} subjectAltNames are not allowed"
    purpose = "server auth" if serving else "client auth"
    wanted = {_SIGNATURE, _ENCIPHERMENT, purpose}
    misused = set(usages) not in (wanted, {_SIGNATURE, purpose})
    misused_text = f"usages did not match [{' '.join(sorted(wanted))}]" if misused else ""
    misnamed = not subject.common_name.startswith(_NODE)
    misnamed_text = "subject common name does not begin with system:node:" if misnamed else ""
    # The order in which each is looked at.
    return misused_text or misnamed_text if serving else misnamed_text or misused_text


def _client_refusal(usages: Collection[str]) -> str:
    for usage in usages:
        if usage not in (_SIGNATURE, _ENCIPHERMENT, "client auth"):
            return f"invalid usage for client certificate: {usage}"
    if "client auth" not in usages:
        return "missing required usage for client certificate: client auth"
    return ""


def lifetime(spec: Mapping[str, Any]) -> timedelta:
    """Return how long from now a certificate is valid that *spec* asks for."""
    seconds = spec.get("expirationSeconds")
    asked = _MAX_LIFETIME if seconds is None else timedelta(seconds=seconds)
    whole = max(_MIN_LIFETIME, min(asked, _MAX_LIFETIME))
    return whole if whole < _SHORT else whole - BACKDATED


def approvals(spec: Mapping[str, Any], subject: Subject) -> list[tuple[str, str]]:
    """Return the rights by which a kubelet's request is approved without a person, best first.

    Each is a subresource of requests that its sender may create, with the sentence that then says
    why the request was approved.
    """
    if spec.get("signerName") != KUBELET_CLIENT:
        return []
    if refusal(KUBELET_CLIENT, subject, spec.get("usages") or ()):
        return []
    after = "kubelet client certificate after SubjectAccessReview."
    other = ("nodeclient", f"Auto approving {after}")
    if spec.get("username") == subject.common_name:
        return [("selfnodeclient", f"Auto approving self {after}"), other]
    return [other]
