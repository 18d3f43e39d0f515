"""Where an APIExport's view is, as soon as there is one."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.app.export_views import view_path, view_url


@pytest.mark.parametrize(
    "export", [{}, {"status": None}, {"status": {}}, {"status": {"virtualWorkspaces": []}}]
)
def test_an_export_without_a_view_has_neither_url_nor_path(export: dict[str, Any]) -> None:
    assert (view_url(export), view_path(export)) == ("", "")


def test_the_first_view_counts_and_its_path_is_what_follows_the_server() -> None:
    urls = [{"url": "https://hub:6443/services/apiexport/root/edge.kcp.io"}, {"url": "https://x/y"}]
    export = {"status": {"virtualWorkspaces": urls}}
    assert view_url(export) == urls[0]["url"]
    assert view_path(export) == "/services/apiexport/root/edge.kcp.io"
