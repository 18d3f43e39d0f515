"""What to do in a mailbox: make, change or remove what is not as it should be."""

from __future__ import annotations

from collections.abc import Iterator

from skerry.api.edge import is_projected
from skerry.controllers.placement_translator.observe import Look, Observed
from skerry.kit.invariant import invariant
from skerry.logic.fleet.translation.categories import BINDINGS, DEFINITIONS, NAMESPACES
from skerry.logic.fleet.translation.configs import config_object
from skerry.logic.fleet.translation.copies import replacement
from skerry.logic.machinery.plan import (
    Action,
    Create,
    Delete,
    DeleteCollection,
    Patch,
    Plan,
    Target,
    Update,
)

PLACED = "Placed"
CHANGED = "Changed"
ADOPTED = "Adopted"
NOT_PLACED = "NotPlacedAnyMore"

_PHASES = 7


def decide(observed: Observed) -> Plan:
    """Bring every object looked at to where it should be.

    Actions of one phase may run side by side; ``phase`` tells which must wait for which.
    """
    actions = [_action(look) for look in observed.looks]
    if observed.config is not None:
        actions += _config(observed.config)
    return Plan(sorted(actions, key=phase), unordered=True)


def phase(action: Action) -> int:
    """Return when an action's turn is: definitions, room, objects; and back the other way.

    A copy needs its namespace and its type; neither may go before it.
    """
    resource = target_of(action).gvr.group_resource
    depth = 2
    if resource in (BINDINGS, DEFINITIONS):
        depth = 0
    elif resource == NAMESPACES:
        depth = 1
    if isinstance(action, Patch):
        return depth + 1
    return _PHASES - 1 - depth if isinstance(action, Delete) else depth


def target_of(action: Action) -> Target:
    """Return the one object an action is about."""
    invariant(not isinstance(action, DeleteCollection), "mailboxes are not emptied wholesale")
    return action.target  # type: ignore[union-attr]  # see above


def phases(plan: Plan) -> Iterator[list[Action]]:
    """Yield the actions of *plan* phase by phase."""
    found: dict[int, list[Action]] = {}
    for action in plan:
        found.setdefault(phase(action), []).append(action)
    for turn in sorted(found):
        yield found[turn]


def _action(look: Look) -> Action:
    if look.wanted is None:
        return Delete(look.target, NOT_PLACED, uid=look.uid)
    if look.live is None:
        return Create(look.target, look.wanted, PLACED)
    reason = CHANGED if is_projected(look.live) else ADOPTED
    return Update(
        look.target, replacement(look.item.group_resource, look.live, look.wanted), reason
    )


def _config(look: Look) -> list[Action]:
    spec = (look.wanted or {})["spec"]
    if look.live is not None:
        return [Update(look.target, {**look.live, "spec": spec}, CHANGED)]
    # Seen from the beginning, as people expect it: a status nobody has written yet.
    status = Patch(look.target, {"status": {}}, PLACED, subresource="status", absent_is_fine=True)
    return [Create(look.target, config_object(spec), PLACED), status]
