"""How configuration errors are reported."""

from __future__ import annotations

from collections.abc import Sequence

from skerry.api.errors import FieldError


class ConfigurationError(Exception):
    """A configuration that cannot be used; the text lists everything that is wrong."""


def aggregated(errors: Sequence[FieldError | str]) -> str:
    """Return several errors as Kubernetes prints an aggregate: bracketed, each text once."""
    texts = list(dict.fromkeys(str(error) for error in errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
