"""``apis.kcp.io``: offering an API from one workspace and using it in others."""

from __future__ import annotations

from skerry.api.kcp.building import (
    AGE,
    Raw,
    anything,
    column,
    condition_path,
    conditions,
    definition,
    listing,
    struct,
    text,
    truth,
)

GROUP = "apis.kcp.io"
_CATEGORIES = ("kcp",)
_PATH = "^(|[a-z0-9]([-a-z0-9]*[a-z0-9])?(:[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$"


def _claim(*, state: bool) -> Raw:
    properties = {
        "all": truth("Whether all objects are claimed."),
        "group": text("API group.", default=""),
        "identityHash": text("Identity of the export that the resource comes from."),
        "resource": text("Resource, in lower-case plural."),
        "resourceSelector": listing(
            struct(
                {"name": text("Name of an object."), "namespace": text("Namespace of objects.")}
            ),
            "Objects that are claimed.",
        ),
    }
    required = ["resource"]
    if state:
        properties["state"] = text("Accepted or Rejected.", enum=["Accepted", "Rejected"])
        required.append("state")
    return struct(properties, required=required)


def _urls() -> Raw:
    return listing(struct({"url": text("URL of the view.")}, required=("url",)), "Views.")


def api_resource_schema() -> Raw:
    """APIResourceSchema: a resource type that does not change."""
    names = struct(
        {
            "categories": listing(text()),
            "kind": text("Kind."),
            "listKind": text("Kind of lists."),
            "plural": text("Resource, in lower-case plural."),
            "shortNames": listing(text()),
            "singular": text("Resource, in lower-case singular."),
        },
        required=("kind", "plural"),
    )
    version = struct(
        {
            "additionalPrinterColumns": listing(
                struct(
                    {
                        "description": text(),
                        "format": text(),
                        "jsonPath": text(),
                        "name": text(),
                        "priority": {"type": "integer", "format": "int32"},
                        "type": text(),
                    },
                    required=("jsonPath", "name", "type"),
                )
            ),
            "deprecated": truth(),
            "deprecationWarning": text(),
            "name": text(
                "Name of the version.", minLength=1, pattern="^v[1-9][0-9]*([a-z]+[1-9][0-9]*)?$"
            ),
            "schema": anything("OpenAPI v3 schema of objects."),
            "served": truth("Whether the version is served.", default=True),
            "storage": truth("Whether objects are stored at this version."),
            "subresources": anything("Subresources status and scale."),
        },
        required=("name", "schema", "served", "storage"),
    )
    spec = struct(
        {
            "group": text("API group; empty for the core group."),
            "names": names,
            "nameValidation": text(),
            "scope": text("Cluster or Namespaced.", enum=["Cluster", "Namespaced"]),
            "versions": listing(version, "Versions.", minItems=1),
        },
        required=("group", "names", "scope", "versions"),
    )
    return definition(
        GROUP,
        "APIResourceSchema",
        "apiresourceschemas",
        {"spec": spec},
        "APIResourceSchema describes a resource type for export.",
        status=False,
        columns=[AGE],
        categories=_CATEGORIES,
    )


def api_export() -> Raw:
    """APIExport: an offer."""
    policy = struct(
        {"local": struct({}, "RBAC of the exporting workspace decides.")},
        "Maximum permissions of users of the export.",
    )
    spec = struct(
        {
            "identity": struct(
                {
                    "secretRef": struct(
                        {"name": text(), "namespace": text()},
                        "Secret with the key that makes the identity.",
                    )
                }
            ),
            "latestResourceSchemas": listing(
                text(),
                "Names of the APIResourceSchemas offered.",
                **{"x-kubernetes-list-type": "set"},
            ),
            "maximalPermissionPolicy": policy,
            "permissionClaims": listing(
                _claim(state=False),
                "Resources that the exporter claims in workspaces that bind it.",
            ),
        }
    )
    status = struct(
        {
            "conditions": conditions(),
            "identityHash": text("Hash of the key that makes the identity."),
            "virtualWorkspaces": _urls(),
        }
    )
    return definition(
        GROUP,
        "APIExport",
        "apiexports",
        {"spec": spec, "status": status},
        "APIExport offers resource types to other workspaces.",
        columns=[AGE],
        categories=_CATEGORIES,
    )


def api_export_endpoint_slice() -> Raw:
    """APIExportEndpointSlice: where an export's objects are seen."""
    spec = struct(
        {
            "export": struct(
                {"name": text(), "path": text(pattern=_PATH)},
                "The export; cannot be changed.",
                required=("name",),
            ),
            "partition": text("Name of a Partition in the same workspace."),
        },
        required=("export",),
    )
    status = struct({"conditions": conditions(), "endpoints": _urls()})
    return definition(
        GROUP,
        "APIExportEndpointSlice",
        "apiexportendpointslices",
        {"spec": spec, "status": status},
        "APIExportEndpointSlice lists the views of an export.",
        columns=[AGE],
        categories=_CATEGORIES,
    )


def api_binding() -> Raw:
    """APIBinding: the use of an offer."""
    spec = struct(
        {
            "permissionClaims": listing(_claim(state=True), "Claims accepted or rejected."),
            "reference": struct(
                {
                    "export": struct(
                        {
                            "name": text("Name of the APIExport."),
                            "path": text(
                                "Path of its workspace; empty for this one.", pattern=_PATH
                            ),
                        },
                        required=("name",),
                    )
                },
                "Export that is bound; cannot be changed.",
                required=("export",),
            ),
        },
        required=("reference",),
    )
    bound = struct(
        {
            "group": text(),
            "resource": text(),
            "schema": struct(
                {"UID": text(), "identityHash": text(), "name": text()},
                required=("UID", "identityHash", "name"),
            ),
            "storageVersions": listing(text()),
        },
        required=("group", "resource", "schema"),
    )
    status = struct(
        {
            "apiExportClusterName": text("Logical cluster of the export."),
            "appliedPermissionClaims": listing(_claim(state=False)),
            "boundResources": listing(bound, "Resources that are bound."),
            "conditions": conditions(),
            "exportPermissionClaims": listing(_claim(state=False)),
            "phase": text("Phase of the binding.", enum=["", "Binding", "Bound"]),
        }
    )
    return definition(
        GROUP,
        "APIBinding",
        "apibindings",
        {"spec": spec, "status": status},
        "APIBinding makes the resource types of an export available in its workspace.",
        required=("spec",),
        columns=[
            AGE,
            column("Ready", condition_path("Ready"), priority=1),
        ],
        categories=_CATEGORIES,
    )


def api_conversion() -> Raw:
    """APIConversion: how versions of a schema relate."""
    rule = struct(
        {
            "destination": text(),
            "field": text(),
            "transformation": text(),
        },
        required=("destination", "field"),
    )
    conversion = struct(
        {
            "from": text(),
            "to": text(),
            "preserve": listing(text()),
            "rules": listing(rule),
        },
        required=("from", "rules", "to"),
    )
    return definition(
        GROUP,
        "APIConversion",
        "apiconversions",
        {"spec": struct({"conversions": listing(conversion)}, required=("conversions",))},
        "APIConversion defines how objects are converted between versions.",
        status=False,
        columns=[AGE],
        categories=_CATEGORIES,
    )


def definitions() -> list[Raw]:
    """Return every kind of the group."""
    return [
        api_resource_schema(),
        api_export(),
        api_export_endpoint_slice(),
        api_binding(),
        api_conversion(),
    ]
