"""Namespaces, ConfigMaps, Secrets and ServiceAccounts."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import orjson

from skerry.api.errors import FieldError
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.logic.machinery.builtin.rules import (
    Errors,
    Rules,
    RuleTable,
    child,
    each,
    immutable,
    member,
    text_at,
)
from skerry.logic.machinery.names import (
    MAX_SUBDOMAIN_LENGTH,
    config_map_key,
    dns1123_label,
    qualified_name,
)

NAME_LABEL = "kubernetes.io/metadata.name"
FINALIZER = "kubernetes"
_MAX_BYTES = 1024 * 1024
_FROZEN = "field is immutable when `immutable` is set"
_ACCOUNT_ANNOTATION = "kubernetes.io/service-account.name"
_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")


# Namespaces.


def _default_namespace(namespace: Object) -> None:
    """Label a namespace with its name, once it has one."""
    metadata = child(namespace, "metadata")
    if metadata.get("name"):
        child(metadata, "labels")[NAME_LABEL] = metadata["name"]
    status = child(namespace, "status")
    if not status.get("phase"):
        status["phase"] = "Active"


def _prepare_namespace(namespace: Object) -> None:
    namespace["status"] = {"phase": "Active"}
    _default_namespace(namespace)
    finalizers = child(namespace, "spec").get("finalizers") or []
    if FINALIZER not in finalizers:
        finalizers = [*finalizers, FINALIZER]
    namespace["spec"]["finalizers"] = finalizers


def _prepare_namespace_update(new: Object, old: Object) -> None:
    """Keep the finalizers: they change through the finalize subresource only."""
    child(new, "spec")["finalizers"] = member(old, "spec", "finalizers") or []


def _validate_namespace(namespace: Object) -> Errors:
    return finalizer_errors(namespace)


def finalizer_errors(namespace: Object) -> Errors:
    """Return what is wrong with ``spec.finalizers`` of a namespace."""
    errors: Errors = []
    for index, name in enumerate(member(namespace, "spec", "finalizers") or ()):
        path = f"spec.finalizers[{index}]"
        errors += each(path, name, qualified_name(name))
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            text = "name is neither a standard finalizer name nor is it fully qualified"
            errors.append(FieldError.invalid(path, name, text))
    return errors


def _validate_namespace_status(new: Object, _: Object) -> Errors:
    phase = member(new, "status", "phase") or ""
    deleted = bool(member(new, "metadata", "deletionTimestamp"))
    wanted = "Terminating" if deleted else "Active"
    if phase == wanted:
        return []
    text = f"may only be '{wanted}' if `deletionTimestamp` is {'not ' if deleted else ''}empty"
    return [FieldError.invalid("status.Phase", phase, text)]


# ConfigMaps.


def _key_errors(data: Mapping[str, Any], path: str) -> Errors:
    errors: Errors = []
    if max(map(len, data), default=0) <= MAX_SUBDOMAIN_LENGTH and all(map(_is_key, data)):
        return errors
    for key in data:
        if len(key) > MAX_SUBDOMAIN_LENGTH or not _is_key(key):
            errors += each(f"{path}[{key}]", key, config_map_key(key))
    return errors


# The same few keys stand in very many objects.
@lru_cache(maxsize=4096)
def _is_key(text: str) -> bool:
    return not config_map_key(text)


def _validate_config_map(config_map: Object) -> Errors:
    data, binary = config_map.get("data") or {}, config_map.get("binaryData") or {}
    errors = _key_errors(data, "data")
    if binary:
        for key in data:
            if key in binary:
                text = "duplicate of key present in binaryData"
                errors.append(FieldError.invalid(f"data[{key}]", key, text))
        errors += _key_errors(binary, "binaryData")
    if _too_large(data, binary):
        errors.append(FieldError.too_long("", _MAX_BYTES))
    return errors


def _too_large(data: Mapping[str, Any], binary: Mapping[str, Any]) -> bool:
    # No character takes more than four bytes, so most need no closer look.
    if not binary and 4 * sum(map(len, filter(None, data.values()))) <= _MAX_BYTES:
        return False
    size = sum(map(_text_size, data.values())) + sum(map(_decoded_size, binary.values()))
    return size > _MAX_BYTES


def _text_size(text: str | None) -> int:
    if not text:
        return 0
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _decoded_size(text: str | None) -> int:
    """Return how many bytes base64 text stands for."""
    return len(text.rstrip("=")) * 3 // 4 if text else 0


def _validate_config_map_update(new: Object, old: Object) -> Errors:
    return _frozen_errors(new, old, ("data", "binaryData")) + _validate_config_map(new)


def _frozen_errors(new: Object, old: Object, fields: tuple[str, ...]) -> Errors:
    if not old.get("immutable"):
        return []
    errors = [] if new.get("immutable") else [FieldError.forbidden("immutable", _FROZEN)]
    return errors + [
        FieldError.forbidden(field, _FROZEN)
        for field in fields
        if (new.get(field) or {}) != (old.get(field) or {})
    ]


# Secrets.


def _default_secret(secret: Object) -> None:
    """Move text that need not be encoded to where data is kept; it wins over what is there."""
    if not secret.get("type"):
        secret["type"] = "Opaque"
    plain = secret.pop("stringData", None)
    if plain:
        data = child(secret, "data")
        for key, value in plain.items():
            encoded = (value or "").encode("utf-8", "surrogatepass")
            data[key] = base64.b64encode(encoded).decode("ascii")


def _validate_secret(secret: Object) -> Errors:
    data = secret.get("data") or {}
    errors = _key_errors(data, "data")
    if sum(map(_decoded_size, data.values())) > _MAX_BYTES:
        errors.append(FieldError.too_long("data", _MAX_BYTES))
    check = _SECRET_TYPES.get(secret.get("type") or "")
    return errors + check(secret, data) if check else errors


def _validate_secret_update(new: Object, old: Object) -> Errors:
    errors = immutable(new.get("type"), old.get("type"), "type")
    return errors + _frozen_errors(new, old, ("data",)) + _validate_secret(new)


def _token_errors(secret: Object, _: Object) -> Errors:
    annotations = member(secret, "metadata", "annotations") or {}
    if annotations.get(_ACCOUNT_ANNOTATION):
        return []
    return [FieldError.required(f"metadata.annotations[{_ACCOUNT_ANNOTATION}]")]


def _json_errors(key: str) -> Callable[[Object, Object], Errors]:
    """Return a check that *key* holds a JSON object; the complaint never shows the secret."""

    def check(_: Object, data: Object) -> Errors:
        path = f"data[{key}]"
        if key not in data:
            return [FieldError.required(path)]
        try:
            found = orjson.loads(base64.b64decode(data[key] or "", validate=True))
        except (ValueError, binascii.Error):
            found = None
        if isinstance(found, dict):
            return []
        text = "invalid character in JSON object"
        return [FieldError.invalid(path, "<secret contents redacted>", text)]

    return check


def _required_keys(*keys: str) -> Callable[[Object, Object], Errors]:
    def check(_: Object, data: Object) -> Errors:
        return [FieldError.required(f"data[{key}]") for key in keys if key not in data]

    return check


def _basic_errors(_: Object, data: Object) -> Errors:
    if "username" in data or "password" in data:
        return []
    return [FieldError.required("data[username]"), FieldError.required("data[password]")]


def _ssh_errors(_: Object, data: Object) -> Errors:
    key = "ssh-privatekey"
    return [] if data.get(key) else [FieldError.required(f"data[{key}]")]


_SECRET_TYPES: dict[str, Callable[[Object, Object], Errors]] = {
    "kubernetes.io/service-account-token": _token_errors,
    "kubernetes.io/dockercfg": _json_errors(".dockercfg"),
    "kubernetes.io/dockerconfigjson": _json_errors(".dockerconfigjson"),
    "kubernetes.io/basic-auth": _basic_errors,
    "kubernetes.io/ssh-auth": _ssh_errors,
    "kubernetes.io/tls": _required_keys("tls.crt", "tls.key"),
}


RULES: RuleTable = {
    GroupResource("", "namespaces"): Rules(
        default=_default_namespace,
        prepare_create=_prepare_namespace,
        prepare_update=_prepare_namespace_update,
        validate_create=_validate_namespace,
        validate_status=_validate_namespace_status,
        check_name=dns1123_label,
        counts_generation=False,
        selectable_fields={
            "status.phase": text_at("status", "phase"),
            "name": text_at("metadata", "name"),
        },
    ),
    GroupResource("", "configmaps"): Rules(
        validate_create=_validate_config_map,
        validate_update=_validate_config_map_update,
        counts_generation=False,
    ),
    GroupResource("", "secrets"): Rules(
        default=_default_secret,
        validate_create=_validate_secret,
        validate_update=_validate_secret_update,
        counts_generation=False,
        selectable_fields={"type": text_at("type")},
    ),
    GroupResource("", "serviceaccounts"): Rules(counts_generation=False),
}
