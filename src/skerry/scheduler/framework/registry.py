"""Which plugins exist.

In-tree plugins are merged with those that installed packages offer under the entry point group
``skerry.scheduler.plugins``. Two plugins of one name are a mistake nobody should have to debug
later, so merging refuses them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points

from skerry.scheduler.framework.plugin import Factory

ENTRY_POINT_GROUP = "skerry.scheduler.plugins"


class RegistryError(Exception):
    """A plugin cannot be registered."""


class Registry:
    """Name to factory."""

    def __init__(self, factories: Mapping[str, Factory] | None = None) -> None:
        self._factories: dict[str, Factory] = dict(factories or {})

    def register(self, name: str, factory: Factory) -> None:
        if name in self._factories:
            raise RegistryError(f"a plugin named {name} already exists")
        self._factories[name] = factory

    def merge(self, other: Registry) -> None:
        """Add all of *other*; the first repeated name ends the merge."""
        for name, factory in other._factories.items():
            self.register(name, factory)

    def get(self, name: str) -> Factory | None:
        return self._factories.get(name)

    def __contains__(self, name: str) -> bool:
        return name in self._factories

    def names(self) -> list[str]:
        return list(self._factories)


def installed_plugins(found: Iterable[EntryPoint] | None = None) -> Registry:
    """Return the plugins other packages offer; importing them happens here, once.

    An entry point names the factory: a class or function taking ``(args, handle)``.
    """
    registry = Registry()
    for entry in entry_points(group=ENTRY_POINT_GROUP) if found is None else found:
        registry.register(entry.name, entry.load())
    return registry
