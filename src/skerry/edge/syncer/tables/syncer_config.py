"""What the SyncerConfigs of the mailbox say together, now or when the hub was last heard.

Their specs are in the journal, so a syncer that starts without its hub knows what it is to do. A
mailbox that was read and has none changes nothing of that: the scope stays what it last was, since
the absence of a SyncerConfig is no order to take everything down (``configured`` says which it is).
"""

from __future__ import annotations

from skerry.api.edge import SYNCER_CONFIG_NAME, SYNCER_CONFIGS
from skerry.api.objects import Object
from skerry.edge.syncer.tables.mailbox import slim
from skerry.edge.syncer.tables.store_identity import Trust
from skerry.edge.syncer.tables.sync_records import SyncRecords
from skerry.kit.signal import Signal
from skerry.logic.fleet.syncing.wanted import revision_of
from skerry.logic.machinery.edges.scope import Scope, scope_of, united
from skerry.runtime.informer import InformerFactory

_FACT = "config"


class ConfigView:
    """The scope in force; ``changed`` is sent when it, or an annotation, may have changed.

    ``reported`` is sent when only a status did. Nearly always we wrote that ourselves, every second
    while there is much to do, and a change has everything looked at that is placed.
    """

    def __init__(self, factory: InformerFactory, records: SyncRecords, trust: Trust) -> None:
        self._records = records
        self._trust = trust
        self.changed = Signal[[]]()
        self.reported = Signal[[]]()
        self.informer = factory.informer(SYNCER_CONFIGS, transform=slim, packed=True, compact=True)
        saved = records.fact(_FACT) or {}
        self._specs: list[Object] = saved.get("specs") or []
        self.scope: Scope = united(map(scope_of, self._specs))
        # The hub's revision at which the specs were last seen to change.
        self.revision: int = saved.get("revision") or 0
        self.informer.add_handler(self._happened)

    @property
    def configured(self) -> bool:
        """Whether the mailbox was asked and has a SyncerConfig."""
        return self.informer.synced.is_set() and len(self.informer.index) > 0

    def main(self) -> Object | None:
        """Return the SyncerConfig that conditions are written to: ours by name, else the first."""
        found = sorted(
            self.informer.index.objects(),
            key=lambda obj: (
                obj["metadata"]["name"] != SYNCER_CONFIG_NAME,
                obj["metadata"]["name"],
            ),
        )
        return found[0] if found else None

    def annotation(self, name: str) -> str:
        """Return an annotation of the main SyncerConfig."""
        main = self.main() or {"metadata": {}}
        return str((main["metadata"].get("annotations") or {}).get(name, ""))

    async def run(self) -> None:
        """Say so when the SyncerConfigs have been read for the first time."""
        await self.informer.wait_synced()
        self._take()

    def _happened(self, old: Object | None, new: Object | None) -> None:
        if not self.informer.synced.is_set():
            return
        if old is not None and new is not None and _configured(old) == _configured(new):
            self.reported.send()
        else:
            self._take()

    def _take(self) -> None:
        main = self.main()
        if main is not None:
            self._trust.saw_config(main["metadata"].get("uid", ""))
            self._read()
        self.changed.send()

    def _read(self) -> None:
        objects = list(self.informer.index.objects())
        specs = [obj.get("spec") or {} for obj in objects]
        specs.sort(key=str)
        if specs == self._specs and self.revision:
            return
        self._specs = specs
        self.scope = united(map(scope_of, specs))
        newest = max(revision_of(obj["metadata"].get("resourceVersion")) for obj in objects)
        self.revision = max(newest, revision_of(self.informer.resource_version))
        self._records.set_fact(_FACT, {"specs": specs, "revision": self.revision})


def _configured(config: Object) -> tuple[object, ...]:
    """Return what a SyncerConfig says to its syncer."""
    metadata = config["metadata"]
    return metadata.get("uid"), metadata.get("annotations"), config.get("spec")
