"""Two moments, for bindings and workspaces."""

from __future__ import annotations

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
