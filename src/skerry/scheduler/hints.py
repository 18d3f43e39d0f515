"""Who wants to hear of which event, by profile.

An event reaches every waiting pod, and every pod in flight replays what it missed: with hundreds
of pods waiting for room, who listens is asked millions of times a minute. So it is worked out once
per profile and kind of event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from skerry.scheduler.framework.events import ClusterEvent, HintFunction, Registration

# A plugin, and how it judges the event; None means that every such event is worth an attempt.
Listener = tuple[str, HintFunction | None]


class Listeners:
    """The registrations of all profiles: profile → plugin → what it registered."""

    def __init__(self, profiles: Mapping[str, Mapping[str, Sequence[Registration]]]) -> None:
        self._profiles = profiles
        self._known: dict[tuple[str, str, int], Sequence[Listener]] = {}
        self._interesting: dict[tuple[str, int], bool] = {}

    def of(self, profile: str, event: ClusterEvent) -> Sequence[Listener]:
        """Return who listens to *event* in *profile*, in the order plugins are configured."""
        key = (profile, event.resource, int(event.action))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = [
                (plugin, registration.hint)
                for plugin, registrations in self._profiles.get(profile, {}).items()
                for registration in registrations
                if registration.event.matches(event)
            ]
        return found

    def interesting(self, event: ClusterEvent) -> bool:
        """Tell whether anybody at all listens to *event*."""
        key = (event.resource, int(event.action))
        found = self._interesting.get(key)
        if found is None:
            found = event.wildcard or any(self.of(name, event) for name in self._profiles)
            self._interesting[key] = found
        return found
