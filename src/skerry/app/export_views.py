"""Where the view of an APIExport is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit


def view_url(export: Mapping[str, Any]) -> str:
    """Return the URL of an export's view; empty before there is one."""
    views = (export.get("status") or {}).get("virtualWorkspaces") or ()
    return str(views[0]["url"]) if views else ""


def view_path(export: Mapping[str, Any]) -> str:
    """Return the path of an export's view at its server; empty before there is one."""
    return urlsplit(view_url(export)).path
