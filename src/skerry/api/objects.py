"""An API object as it travels: what JSON makes of a manifest.

One alias, so that a signature can say "an object of the API" without knowing the machinery that
serves its type. Objects out of a cache are read-only by agreement; tests run with the mutation
check on.
"""

from __future__ import annotations

from typing import Any, TypeAlias

Object: TypeAlias = dict[str, Any]
