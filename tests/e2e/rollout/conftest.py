"""What runs only against a server that somebody has to name is no test of the suite."""

from __future__ import annotations

import os

collect_ignore = [] if os.environ.get("SKERRY_E2E_KCP") else ["test_foreign_kcp.py"]
