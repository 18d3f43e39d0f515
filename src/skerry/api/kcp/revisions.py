"""PlacementRevision and RevisionContent: what a placement sent at some moment, while it matters.

A PlacementRevision is a manifest: which objects a placement sends, each by the digest of its
content. The contents themselves are RevisionContents, one for each digest, whatever the number of
revisions and destinations. Both are written by the placement translator, only for placements that
have a Rollout; neither is ever changed. The edge scheduler says in the status what became of a
revision.

Contents hold whatever was placed, Secrets among it. So their kind is in no aggregated role, and a
hub of ours encrypts them as it does Secrets.
"""

from __future__ import annotations

from skerry.api.kcp.building import (
    AGE,
    Raw,
    anything,
    column,
    definition,
    listing,
    struct,
    text,
    truth,
    whole,
)

VERDICTS = ("Candidate", "Good", "Bad")
# What one PlacementRevision lists; a larger revision has further pages.
MAX_ITEMS = 2000
# Causes that are named; the rest are counted.
MAX_CAUSES = 20
_MAX_CUSTOMIZERS = 2000

_NAME = 253
_DIGEST = {"maxLength": 64, "pattern": "^[0-9a-f]+$"}
_ATOMIC = {"x-kubernetes-list-type": "atomic"}
_UNCHANGED = [{"rule": "self == oldSelf", "message": "a revision is never changed"}]


def definitions(group: str, categories: tuple[str, ...]) -> list[Raw]:
    """Return both kinds."""
    return [_placement_revision(group, categories), _revision_content(group)]


def _identity() -> dict[str, Raw]:
    return {
        "group": text("API group; empty for the core group.", maxLength=_NAME),
        "resource": text("Resource, in lower-case plural.", maxLength=_NAME),
        "namespace": text("Namespace; empty for cluster-scoped objects.", maxLength=_NAME),
        "name": text("Name of the object.", maxLength=_NAME),
    }


def _placement_revision(group: str, categories: tuple[str, ...]) -> Raw:
    status = struct(
        {
            "verdict": text(
                "Candidate until a rollout has judged it; Good when one completed with it; Bad "
                "when one failed, and it is not tried again without a person.",
                enum=list(VERDICTS),
            )
        },
        "State of the revision, written by the edge scheduler.",
    )
    return definition(
        group,
        "PlacementRevision",
        "placementrevisions",
        {"spec": _revision_spec(), "status": status},
        "PlacementRevision lists what an EdgePlacement sends at one revision: each object by the "
        "digest of its content. It is never changed.",
        columns=[
            column("Placement", ".spec.placement"),
            column("Number", ".spec.number", "integer"),
            column("Verdict", ".status.verdict"),
            column("Digest", ".spec.digest", priority=1),
            AGE,
        ],
        short_names=("prev",),
        categories=categories,
        required=("spec",),
    )


def _inputs() -> Raw:
    customizer = struct(
        {
            "namespace": text("Namespace of the Customizer.", maxLength=_NAME),
            "name": text("Name of the Customizer.", maxLength=_NAME),
            "digest": text("Name of the RevisionContent.", **_DIGEST),
        },
        required=("digest", "name", "namespace"),
    )
    return struct(
        {
            "what": text("Digest of the placement's selection.", **_DIGEST),
            "customizers": listing(
                customizer,
                "Customizers that the objects refer to.",
                maxItems=_MAX_CUSTOMIZERS,
                **_ATOMIC,
            ),
        },
        "Other inputs of the copies.",
        required=("what",),
    )


def _item() -> Raw:
    return struct(
        {
            **_identity(),
            "digest": text("Name of the RevisionContent.", **_DIGEST),
            "resourceVersion": text(
                "Resource version of the source when it was read.", maxLength=64
            ),
            "bytes": whole("Size of the content.", format="int64", minimum=0),
            "generation": whole(
                "Generation of the source, if it has one.", format="int64", minimum=0
            ),
            "storageVersion": text(
                "Of a CustomResourceDefinition: the version that objects are stored at.",
                maxLength=64,
            ),
            "noRollback": truth("Whether the owner says that it must not be taken back."),
        },
        required=("digest", "name", "resource"),
    )


def _revision_spec() -> Raw:
    cause = struct(
        {
            "item": struct(_identity(), "The object that changed.", required=("name", "resource")),
            "resourceVersion": text(
                "Resource version of the change; absent where the object was deleted.", maxLength=64
            ),
            "manager": text("Field manager of the last change.", maxLength=128),
            "user": text("Who made the change, where the hub recorded it.", maxLength=_NAME),
        },
        required=("item",),
    )
    page = struct(
        {
            "number": whole("Number of this page, from 1.", format="int32", minimum=1),
            "of": whole("Number of pages.", format="int32", minimum=1),
        },
        "A revision with many objects has several PlacementRevisions, of one number and digest.",
        required=("number", "of"),
    )
    return struct(
        {
            "placement": text("Name of the EdgePlacement.", minLength=1, maxLength=_NAME),
            "number": whole("Number of the revision.", format="int64", minimum=1),
            "digest": text(
                "Digest of all objects and inputs; equal digests are one revision.", **_DIGEST
            ),
            "items": listing(_item(), "Objects of the revision.", maxItems=MAX_ITEMS, **_ATOMIC),
            "inputs": _inputs(),
            "page": page,
            "causes": listing(
                cause,
                "Differences from the revision before; the first few.",
                maxItems=MAX_CAUSES,
                **_ATOMIC,
            ),
            "causesOmitted": whole("Number of causes left out.", format="int32", minimum=0),
        },
        "The revision.",
        required=("digest", "inputs", "items", "number", "page", "placement"),
        **{"x-kubernetes-validations": _UNCHANGED},
    )


def _revision_content(group: str) -> Raw:
    content = anything("The object, as it is copied before it is customized.")
    return definition(
        group,
        "RevisionContent",
        "revisioncontents",
        {"content": {**content, "x-kubernetes-validations": _UNCHANGED}},
        "RevisionContent holds one object as revisions name it, by its digest. It is never "
        "changed: a content that does not agree with its name is taken for missing.",
        status=False,
        columns=[
            column("Kind", ".content.kind"),
            column("Namespace", ".content.metadata.namespace"),
            column("Object", ".content.metadata.name"),
            AGE,
        ],
        required=("content",),
    )
