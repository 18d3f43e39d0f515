"""Whether a CustomResourceDefinition may be written, in Kubernetes' words.

Kubernetes validates an internal form in which what all versions share stands once, above them:
a definition with one version is refused in terms of ``spec.validation.openAPIV3Schema``, not of
``spec.versions[0].schema``. The paths here follow that form, because users and their searches
know them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from skerry.api.errors import FieldError
from skerry.api.objects import Raw
from skerry.logic.machinery import names
from skerry.logic.machinery.crd.conversion import conversion_errors
from skerry.logic.machinery.crd.definition import (
    established,
    mapping,
    names_of,
    sequence,
    spec_of,
    text,
    versions_of,
)
from skerry.logic.machinery.crd.version_validation import Shared, version_errors

_APPROVAL = "api-approved.kubernetes.io"
_APPROVAL_HELP = "see https://github.com/kubernetes/enhancements/pull/1111"


def validate_crd_in_workspace(crd: Raw, old: Raw | None = None) -> list[FieldError]:
    """Return what keeps *crd* from being created in a workspace.

    Kubernetes' own groups without a dot (``apps``) are not served there, so that they are free to
    be defined, as in kcp.
    """
    return [error for error in validate_crd(crd, old) if error.message != _dotless(crd).message]


def _dotless(crd: Raw) -> FieldError:
    group, detail = text(spec_of(crd).get("group")), "should be a domain with at least one dot"
    return FieldError.invalid("spec.group", group, detail)


def validate_crd(crd: Raw, old: Raw | None = None) -> list[FieldError]:
    """Return what keeps *crd* from being created, or from replacing *old*."""
    errors = [*_metadata(crd, old), *_spec(crd, old)]
    if old is not None:
        errors += _immutable(crd, old)
        # That of a new definition is the server's, made of the names above.
        status = mapping(crd.get("status"))
        errors += _names_form(mapping(status.get("acceptedNames")), "status.acceptedNames")
        errors += _stored_versions(status.get("storedVersions"), crd)
    elif not any(version.get("storage") for version in versions_of(crd)):
        errors += _stored_versions((), crd)
    errors += _approval(crd, old)
    if spec_of(crd).get("preserveUnknownFields") and not (
        old is not None and spec_of(old).get("preserveUnknownFields")
    ):
        detail = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
            "spec.versions[*].schema instead"
        )
        errors.append(FieldError.invalid("spec.preserveUnknownFields", True, detail))
    return errors


def _metadata(crd: Raw, old: Raw | None) -> Iterator[FieldError]:
    if old is not None:
        return
    name = text(mapping(crd.get("metadata")).get("name"))
    wanted = f"{text(names_of(crd).get('plural'))}.{text(spec_of(crd).get('group'))}"
    if name and name != wanted:
        detail = 'must be spec.names.plural+"."+spec.group'
        yield FieldError.invalid("metadata.name", name, detail)


def _spec(crd: Raw, old: Raw | None) -> Iterator[FieldError]:
    spec = spec_of(crd)
    yield from _group(text(spec.get("group")))
    yield from _scope(text(spec.get("scope")))
    versions = versions_of(crd)
    shared = Shared.of(versions)
    unchanged = _unchanged_schemas(versions, old)
    yield from version_errors(versions, shared, unchanged)
    yield from _version_list(versions)
    yield from _required_names(names_of(crd))
    yield from _names_form(names_of(crd), "spec.names")
    yield from shared.errors(versions, unchanged)
    yield from conversion_errors(spec)


def _unchanged_schemas(versions: list[Raw], old: Raw | None) -> frozenset[str]:
    """Return the versions whose schema an update leaves alone; their costs are not judged."""
    if old is None:
        return frozenset()
    before = {text(version.get("name")): version.get("schema") for version in versions_of(old)}
    return frozenset(
        text(version.get("name"))
        for version in versions
        if before.get(text(version.get("name"))) == version.get("schema")
    )


def _group(group: str) -> Iterator[FieldError]:
    wrong = names.dns1123_subdomain(group)
    if not group:
        yield FieldError.required("spec.group")
    elif wrong:
        yield FieldError.invalid("spec.group", group, ",".join(wrong))
    elif "." not in group:
        detail = "should be a domain with at least one dot"
        yield FieldError.invalid("spec.group", group, detail)


def _scope(scope: str) -> Iterator[FieldError]:
    if not scope:
        yield FieldError.required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        yield FieldError.not_supported("spec.scope", scope, ("Cluster", "Namespaced"))


# Each is a type of its own, with its rules and documents, made whenever the definition changes.
MAX_VERSIONS: Final = 50


def _version_list(versions: list[Raw]) -> Iterator[FieldError]:
    if len(versions) > MAX_VERSIONS:
        yield FieldError.too_many("spec.versions", len(versions), MAX_VERSIONS)
    found = [text(version.get("name")) for version in versions]
    if len(set(found)) != len(found):
        yield _of_versions(versions, "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        yield _of_versions(versions, detail)


def _of_versions(versions: list[Raw], detail: str) -> FieldError:
    """Complain about the list of versions, showing their names and flags, not their schemas."""
    shown = [
        {key: version[key] for key in ("name", "served", "storage") if key in version}
        for version in versions
    ]
    return FieldError.invalid("spec.versions", shown, detail)


def _required_names(wanted: Raw) -> Iterator[FieldError]:
    for name in ("plural", "singular", "kind", "listKind"):
        if not wanted.get(name):
            yield FieldError.required(f"spec.names.{name}")


def _names_form(found: Raw, path: str) -> Iterator[FieldError]:
    for name in ("plural", "singular"):
        yield from _label(text(found.get(name)), f"{path}.{name}")
    for name in ("kind", "listKind"):
        kind = text(found.get(name))
        wrong = names.dns1035_label(kind.lower()) if kind else []
        if wrong:
            detail = "may have mixed case, but should otherwise match: " + ",".join(wrong)
            yield FieldError.invalid(f"{path}.{name}", kind, detail)
    for index, short in enumerate(sequence(found.get("shortNames"))):
        yield from _label(text(short), f"{path}.shortNames[{index}]", required=True)
    if found.get("kind") and found.get("kind") == found.get("listKind"):
        detail = "kind and listKind may not be the same"
        yield FieldError.invalid(f"{path}.listKind", found.get("listKind"), detail)
    for index, category in enumerate(sequence(found.get("categories"))):
        yield from _label(text(category), f"{path}.categories[{index}]", required=True)


def _label(name: str, path: str, *, required: bool = False) -> Iterator[FieldError]:
    if name or required:
        wrong = names.dns1035_label(name)
        if wrong:
            yield FieldError.invalid(path, name, ",".join(wrong))


def _immutable(crd: Raw, old: Raw) -> Iterator[FieldError]:
    """Yield changes of what decides where objects are stored."""
    fixed = ["spec.group", "spec.names.plural"]
    if established(old):
        fixed = ["spec.scope", "spec.names.kind", *fixed]
    for path in fixed:
        new = _at(crd, path)
        if new != _at(old, path):
            yield FieldError.invalid(path, new, "field is immutable")


def _at(obj: Any, path: str) -> Any:
    for name in path.split("."):
        obj = mapping(obj).get(name)
    return obj


def _stored_versions(stored: Any, crd: Raw) -> Iterator[FieldError]:
    path = "status.storedVersions"
    listed = [text(version) for version in sequence(stored)]
    if not listed:
        yield FieldError.invalid(path, [], "must have at least one stored version")
        return
    served = {text(version.get("name")): version for version in versions_of(crd)}
    for name, version in served.items():
        if version.get("storage") and name not in listed:
            yield FieldError.invalid(path, listed, f"must have the storage version {name}")
    for index, name in enumerate(listed):
        if name not in served:
            detail = (
                f"missing from spec.versions; {name} was previously a storage version, and must "
                "remain in spec.versions until a storage migration ensures no data remains "
                f"persisted in {name} and removes {name} from status.storedVersions"
            )
            yield FieldError.invalid(f"{path}[{index}]", name, detail)


def _approval(crd: Raw, old: Raw | None) -> Iterator[FieldError]:
    """Groups of the Kubernetes project need its approval, or a reason to go without."""
    group = text(spec_of(crd).get("group"))
    if not (f".{group}").endswith((".k8s.io", ".kubernetes.io")):
        return
    annotation = _annotation(crd)
    if old is not None and _state(_annotation(old)) == _state(annotation):
        return
    path = f"metadata.annotations[{_APPROVAL}]"
    problem = f'protected groups must have approval annotation "{_APPROVAL}"'
    state = _state(annotation)
    if state == "missing":
        yield FieldError.required(path, f"{problem}, {_APPROVAL_HELP}")
    elif state == "invalid":
        detail = f'{problem} with either a URL or a reason starting with "unapproved"'
        yield FieldError.invalid(path, annotation, f"{detail}, {_APPROVAL_HELP}")


def _annotation(crd: Raw) -> str:
    annotations = mapping(mapping(crd.get("metadata")).get("annotations"))
    return text(annotations.get(_APPROVAL))


def _state(annotation: str) -> str:
    if not annotation:
        return "missing"
    if annotation.startswith("unapproved"):
        return "bypassed"
    scheme, separator, rest = annotation.partition("://")
    return "approved" if separator and scheme and rest.strip("/") else "invalid"
