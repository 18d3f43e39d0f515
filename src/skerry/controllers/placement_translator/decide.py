"""What to do in a mailbox: make, change or remove what is not as it should be.

Rows were derived from caches, and what is changed was read afresh after that. So a row may be out
of date by now, in one of three ways, and none of them is written over:

    the live copy is as desired already     nothing: somebody was faster, or our answer was lost
    it records another owner than the row   nothing: its event is on its way and marks the row
    there is no live copy any more          it is created; one that exists by then is an outcome

A removal needs no fresh copy. It names the UID: an object made anew under the name is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from skerry.api.edge import REVISIONS, Mailbox, is_projected
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ClusterName, ObjectRef
from skerry.controllers.placement_translator.guards import Judgement
from skerry.controllers.placement_translator.observe import Observed
from skerry.kit.invariant import InvariantError, invariant
from skerry.logic.fleet.revision.noted import noted
from skerry.logic.fleet.tables.completeness import Verdict
from skerry.logic.fleet.translation.categories import BINDINGS, DEFINITIONS, NAMESPACES
from skerry.logic.fleet.translation.configs import config_object
from skerry.logic.fleet.translation.copies import digest, replacement
from skerry.logic.fleet.translation.difference import ItemDiff
from skerry.logic.fleet.translation.dirty import CONFIG
from skerry.logic.fleet.translation.ownership import owned_of
from skerry.logic.fleet.translation.source_generation import recorded_generation
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

# Definitions, namespaces, objects, as they are made (0 to 2); objects, namespaces, definitions, as
# they are removed (4 to 6). Between them (3) the first status of a SyncerConfig.
_PHASES = 7


@dataclass(frozen=True, slots=True)
class MailboxPlan(Plan):
    """A plan, the rows it is for, and what guards said of them.

    ``done`` are those with nothing to do; the others are done when their action went well, or wait
    for what they miss.
    """

    judgement: Judgement = field(default=Judgement(Mailbox("", ""), ()))
    done: frozenset[ObjectRef] = frozenset()
    numbers: Mapping[ObjectRef, int] = field(default_factory=dict)

    @property
    def mailbox(self) -> Mailbox:
        return self.judgement.mailbox

    @property
    def rows(self) -> tuple[ItemDiff, ...]:
        return self.judgement.rows


def decide(observed: Observed) -> MailboxPlan:
    """Bring every row that was evaluated to where it should be.

    Actions of one phase may run side by side; ``phase`` tells which must wait for which.
    """
    actions: list[Action] = []
    done = set()
    for row in observed.rows:
        if row.verdict is Verdict.PENDING:
            continue
        found = _actions(row, observed.cluster, observed.live.get(row.item))
        actions += found
        if not found:
            done.add(row.item)
    return MailboxPlan(
        sorted(actions, key=phase),
        unordered=True,
        judgement=observed.judgement,
        done=frozenset(done),
        numbers=observed.numbers,
    )


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
    invariant(not isinstance(action, DeleteCollection), "mailboxes are not emptied by collection")
    return action.target  # type: ignore[union-attr]  # see above


def phases(plan: Plan) -> Iterator[list[Action]]:
    """Yield the actions of *plan* phase by phase."""
    found: dict[int, list[Action]] = {}
    for action in plan:
        found.setdefault(phase(action), []).append(action)
    for turn in sorted(found):
        yield found[turn]


def _actions(row: ItemDiff, cluster: ClusterName, live: Object | None) -> list[Action]:
    """Return what is to be done for one row; *live* is the newest version of what is changed."""
    if row.verdict is Verdict.NONE:
        return []
    target = _target(row.item, cluster, row.gvr)
    if row.verdict is Verdict.DELETE:
        # Said, because some kinds would leave what they own to nobody.
        return [Delete(target, NOT_PLACED, uid=row.uid, propagation="Background")]
    desired = row.render() if row.render is not None else {}
    if row.item == CONFIG:
        return _config_actions(target, desired["spec"], desired["note"], live)
    if live is None:
        return [Create(target, desired, PLACED)]
    kind = row.item.group_resource
    if is_projected(live):
        owned = owned_of(live)
        counted = recorded_generation(desired) in (0, recorded_generation(live))
        if digest(kind, live) == digest(kind, desired) and owned == owned_of(desired) and counted:
            return []  # somebody was faster
        if owned != row.owned:
            return []  # whose it is was decided anew; the event that says so is on its way
    reason = CHANGED if is_projected(live) else ADOPTED
    return [Update(target, replacement(kind, live, desired), reason)]


def _config_actions(target: Target, spec: Object, note: str, live: Object | None) -> list[Action]:
    """Return what makes a SyncerConfig say *spec* and *note*; what else is in it stays.

    A status that nobody has written yet is seen from the beginning, as people expect it. It is a
    request of its own, so one that is there without is given it, by whoever finds that.
    """
    status = Patch(target, {"status": {}}, PLACED, subresource="status", absent_is_fine=True)
    if live is None:
        return [Create(target, _with_note(config_object(spec), note), PLACED), status]
    found: list[Action] = []
    if live.get("spec") != spec or noted(live) != note:
        found.append(Update(target, _with_note({**live, "spec": spec}, note), CHANGED))
    return found if live.get("status") is not None else [*found, status]


def _with_note(config: Object, note: str) -> Object:
    """Return a SyncerConfig that notes which revisions are there; none when *note* is empty."""
    if noted(config) == note:
        return config
    metadata = config["metadata"]
    notes = dict(metadata.get("annotations") or {})
    notes.pop(REVISIONS, None)
    if note:
        notes[REVISIONS] = note
    return {**config, "metadata": {**metadata, "annotations": notes}}


def _target(item: ObjectRef, cluster: ClusterName, gvr: GroupVersionResource | None) -> Target:
    if gvr is None:
        raise InvariantError(f"{item} has to change, and no version to change it at")
    return Target(gvr, item.name, item.namespace, cluster)
