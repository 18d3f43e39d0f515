"""A worker process of a hub: it knows types by the same rules as the hub itself."""

from __future__ import annotations

from skerry.logic.fleet.type_rules import with_type_rules
from skerry.server.offload import worker

if __name__ == "__main__":
    worker.main(with_type_rules)
