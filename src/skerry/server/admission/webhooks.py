"""Admission webhooks, applied.

A configuration is in force from the answer to its write on: configurations are kept up by the
dispatcher, and their writers are answered only when it has seen them. Mutating webhooks are asked
one after the other, in the order of their configurations' names, before the server's own rules
judge the object; validating ones all at once, when it is complete and valid. Nothing is held while
a webhook is waited for: when the object was changed meanwhile, the write begins again.

In a workspace, the types that are bound from an exporter are judged by the exporter's webhooks and
no others, as in kcp; everything else by the workspace's own. Objects that are inert where they are
(copies on their way to an edge) are judged where they take effect. Configurations themselves are
never sent to webhooks, so that a broken one can be taken away.

Most requests meet no webhook; they cost one look into a table.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import orjson
from msgspec.structs import replace

from skerry.api.errors import ApiError, InternalError
from skerry.api.keys import ObjectKey
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.logic.machinery.admission.webhooks import NOT_REVIEWED, Response, webhooks_of
from skerry.server.admission.operation import Admission, Operation
from skerry.server.admission.policy_run import PolicyRun
from skerry.server.admission.requests import is_internal
from skerry.server.admission.subjects import namespace_of
from skerry.server.admission.webhook_calls import (
    ADMIT,
    VALIDATE,
    Hook,
    WebhookCalls,
    first_error,
    mutation_note,
)
from skerry.server.change import Change
from skerry.server.conversion import completed, later
from skerry.server.observed import ObservedObjects
from skerry.server.preparation.mutated import (
    conformed,
    patched,
    requested,
    unborn,
    with_scale,
)
from skerry.server.request.versions import Versions
from skerry.server.watch.dispatcher import Dispatcher
from skerry.store.base import Store


class WebhookSource:
    """The webhooks of one kind of every cluster, kept up from their configurations."""

    def __init__(self, group: str, resource: str) -> None:
        self._configurations = ObservedObjects(group, resource)
        # Empty where there is none at all.
        self.configured: Mapping[tuple[str, str], object] = self._configurations.by_place
        self._hooks: dict[str, tuple[Hook, ...]] = {}
        # Whether Services lead anywhere from here.
        self.services = True

    def ignore(self, inert: Callable[[Object], bool]) -> None:
        """Leave out configurations that have no effect here; call before ``follow``."""
        self._configurations.inert = inert

    async def follow(self, store: Store, dispatcher: Dispatcher) -> None:
        """Read what is there and keep it up; call before the dispatcher runs."""
        await self._configurations.follow(store, dispatcher)
        # After the objects themselves: what was made of them is made anew when needed.
        dispatcher.observe(self._configurations.prefix, self._changed, self._hooks.clear)

    def _changed(self, change: Change) -> None:
        self._hooks.pop(ObjectKey.parse(change.event.key).cluster, None)

    def of(self, cluster: str) -> Sequence[Hook]:
        """Return the webhooks of *cluster*, in the order in which they are called."""
        configurations = self._configurations.within(cluster)
        if not configurations:
            return ()
        known = self._hooks.get(cluster)
        if known is None:
            known = self._hooks[cluster] = tuple(self._made(cluster, configurations))
        return known

    def _made(self, cluster: str, configurations: Mapping[str, Object]) -> Iterator[Hook]:
        for _, configuration in sorted(configurations.items()):
            for webhook in webhooks_of(configuration):
                if self.services or webhook.client.service is None:
                    yield Hook(cluster, webhook)


class _Webhooks:
    """What both kinds have: which webhooks may concern a write."""

    def __init__(self, source: WebhookSource, calls: WebhookCalls) -> None:
        self._source = source
        self._calls = calls

    @property
    def is_idle(self) -> bool:
        """Whether there is nobody to ask."""
        return not self._source.configured

    def _in_force(self, operation: Operation) -> Sequence[Hook]:
        call, around = operation.call, self._calls.around
        cluster = call.info.cluster
        exporter = around.exporter(call) if call.resource.identity else ""
        found = self._source.of(exporter or cluster)
        if not found or operation.type in NOT_REVIEWED or around.inert(cluster, operation.obj):
            return ()
        if is_internal(operation):
            return ()
        return found

    async def _namespace(self, operation: Operation) -> Object | None:
        around = self._calls.around
        return await namespace_of(operation, around.namespaces, around.store)


class ValidatingWebhooks(_Webhooks):
    """Asks validating webhooks about what is about to be stored."""

    async def validate(self, operation: Operation, seen: Callable[[], Object]) -> None:
        """Raise the first refusal."""
        hooks = self._in_force(operation)
        if not hooks:
            return
        namespace = await self._namespace(operation)
        calls, meant = self._calls, list[tuple[int, Hook, GroupVersionResource]]()
        judged = replace(operation, obj=seen())
        run = PolicyRun(calls.around, judged, namespace)
        for index, hook in enumerate(hooks):
            resource = await calls.meant(hook, operation, run, namespace, VALIDATE)
            if resource is not None:
                meant.append((index, hook, resource))

        async def refusal(index: int, hook: Hook, by: GroupVersionResource) -> ApiError | None:
            try:
                await calls.ask(hook, judged, run, by, VALIDATE, f"round_0_index_{index}")
            except ApiError as error:
                return error
            return None

        error = first_error(await asyncio.gather(*(refusal(*each) for each in meant)))
        if error is not None:
            raise error


class MutatingWebhooks(_Webhooks):
    """Asks mutating webhooks, and makes of the object what they answer.

    *before* are the server's own rules that change objects. When a webhook changed one they are
    applied again, and after them those webhooks that want to see what became of it.
    """

    def __init__(self, source: WebhookSource, calls: WebhookCalls, before: Admission) -> None:
        super().__init__(source, calls)
        self._before = before

    async def admit(self, operation: Operation) -> None:
        # A deletion changes nothing: see ``validate``.
        if not self._source.configured or operation.verb == "DELETE":
            return
        hooks = self._in_force(operation)
        if not hooks:
            return
        rounds = _Rounds()
        namespace = await self._namespace(operation)
        if not await self._round(hooks, operation, namespace, rounds):
            return
        reached = orjson.dumps(operation.obj)
        await self._again(operation)
        if orjson.dumps(operation.obj) != reached:
            rounds.require_all()
        rounds.number = 1
        if rounds.required and await self._round(hooks, operation, namespace, rounds):
            await self._again(operation)

    async def _again(self, operation: Operation) -> None:
        """Apply the rules that went before once more, as if for the first time."""
        if operation.asked:
            return
        operation.writes.clear()
        await self._before.admit(operation)

    async def validate(self, operation: Operation, seen: Callable[[], Object]) -> None:
        """Ask about a deletion, which no answer can change."""
        if operation.verb == "DELETE":
            hooks = self._in_force(operation)
            judged = replace(operation, obj=seen()) if hooks else operation
            namespace = await self._namespace(operation) if hooks else None
            await self._round(hooks, judged, namespace, _Rounds())

    async def _round(
        self, hooks: Sequence[Hook], operation: Operation, namespace: Object | None, rounds: _Rounds
    ) -> bool:
        """Ask each webhook that is meant; tell whether any of them changed the object."""
        calls, changed_any = self._calls, False
        shown, run = self._seen(operation, namespace)
        for index, hook in enumerate(hooks):
            if rounds.number and hook not in rounds.required:
                continue
            resource = await calls.meant(hook, shown, run, namespace, ADMIT)
            if resource is None:
                continue
            place = f"round_{rounds.number}_index_{index}"
            response = await calls.ask(hook, shown, run, resource, ADMIT, place)
            changed = response is not None and await completed(
                later(partial(self._change, hook, operation, run, resource, response))
            )
            operation.note(f"{ADMIT.prefix}{place}", mutation_note(hook, changed=changed))
            if changed:
                changed_any = True
                rounds.require_all()
                shown, run = self._seen(operation, namespace)
            if hook.webhook.reinvoked:
                rounds.called.add(hook)
        return changed_any

    def _seen(self, operation: Operation, namespace: Object | None) -> tuple[Operation, PolicyRun]:
        shown = operation
        if operation.verb == "CREATE" and not operation.asked:
            shown = replace(operation, obj=unborn(operation.call, operation.obj))
        return shown, PolicyRun(self._calls.around, shown, namespace)

    def _change(
        self,
        hook: Hook,
        operation: Operation,
        run: PolicyRun,
        resource: GroupVersionResource,
        response: Response,
    ) -> bool:
        """Make of the object what a webhook answers; tell whether it is another now."""
        call, calls = operation.call, self._calls
        shown = calls.stamped(run.inputs_at(resource).object, call.info.cluster)
        if not response.patch:
            return False
        if shown is None:
            name = f'admission webhook "{hook.webhook.name}"'
            why = "attempted to modify the object, which is not supported for this operation"
            raise InternalError.of(f"{name} {why}")
        new = patched(shown, response.patch)
        if new is None:
            return False
        calls.stamp.strip(new)
        if operation.asked:
            new = requested(operation.obj, new)
        elif operation.subresource == "scale":
            new = with_scale(call, operation.obj, new)
        else:
            info = call.resource.info
            if resource.version != info.version:
                new = Versions(call).converted(new, info.api_version) or new
            new = conformed(call, operation.obj, new, operation.old, operation.subresource)
        changed = new != operation.obj
        operation.obj = new
        return changed


class _Rounds:
    """Which webhooks are to be asked again, and which may be when something changes after them."""

    def __init__(self) -> None:
        self.number = 0
        self.called: set[Hook] = set()
        self.required: set[Hook] = set()

    def require_all(self) -> None:
        """Have everybody asked again who was asked so far and wants to be."""
        self.required |= self.called
        self.called.clear()
