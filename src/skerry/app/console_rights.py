"""What a console in a process of its own knows of rights: answers of the hub, while they hold.

Views ask without waiting. What is not known is noted, the view is given up, and made again once
the hub has replied. All answers are of one version of rights: when that differs none is believed,
and whatever was asked before is asked again in one go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable

from skerry.api.kinds import GroupVersionResource
from skerry.app.console_link import Asked, Question, Replies
from skerry.server.user import User
from skerry.web.eyes import Rights, Unlearned

# Answers that are kept, besides those that were just given; one viewer of a large hub asks some
# thousands.
MAX_KNOWN = 100_000
_PAUSE_SECONDS = 0.1

Ask = Callable[[Asked], Awaitable[Replies | None]]


class LearnedRights:
    """Answers of the hub to questions about rights; *ask* asks it, None when it is too busy."""

    def __init__(self, ask: Ask, version: Callable[[], object], max_known: int = MAX_KNOWN) -> None:
        self._ask = ask
        self._version = version
        self._max_known = max_known
        self._of: object = None
        self._rights: dict[Hashable, bool] = {}
        self._paths: dict[str, str] = {}
        self._clusters: dict[str, str | None] = {}
        # What was asked and is not known.
        self._questions: dict[Hashable, Question] = {}
        self._unplaced: set[str] = set()
        self._unresolved: set[str] = set()
        # What each viewer asked since rights last changed, and before that: all of it is asked
        # again as soon as the viewer comes back.
        self._asked: dict[Hashable, dict[Hashable, Question]] = {}
        self._before: dict[Hashable, dict[Hashable, Question]] = {}
        self._learning = asyncio.Lock()

    def rights(self) -> Rights:
        """Return them as views ask."""
        return Rights(self._may, self._version, self._path_of, self._resolve, self.learn)

    def _may(self, user: User, cluster: str, verb: str, gvr: GroupVersionResource) -> bool:
        self._believe()
        who = (user.name, user.groups, user.home)
        key = (who, cluster, verb, gvr)
        known = self._rights.get(key)
        if known is None:
            self._questions |= self._before.pop(who, {})
            self._questions[key] = (user, cluster, verb, *gvr)
            raise Unlearned
        return known

    def _path_of(self, cluster: str) -> str:
        self._believe()
        known = self._paths.get(cluster)
        if known is None:
            self._unplaced.add(cluster)
            raise Unlearned
        return known

    def _resolve(self, path: str) -> str | None:
        self._believe()
        if path not in self._clusters:
            self._unresolved.add(path)
            raise Unlearned
        return self._clusters[path]

    def _believe(self) -> None:
        """Forget answers about rights that are no more."""
        version = self._version()
        if version != self._of:
            self._of = version
            self._forget()

    def _forget(self) -> None:
        self._before, self._asked = self._asked, {}
        self._rights, self._paths, self._clusters = {}, {}, {}

    async def learn(self) -> None:
        """Ask the hub about everything that was not known."""
        async with self._learning:
            self._believe()
            of, questions = self._of, self._questions
            clusters = self._unplaced | {each[1] for each in questions.values()}
            asked = Asked([*questions.values()], [*clusters], [*self._unresolved])
            if not (asked.rights or asked.clusters or asked.paths):
                return
            self._questions, self._unplaced, self._unresolved = {}, set(), set()
            replies = await self._ask(asked)
            if replies is None:
                await asyncio.sleep(_PAUSE_SECONDS)
                return
            self._believe()
            if of != self._of:
                # About what is no more: whoever wants to know asks anew.
                return
            if len(self._rights) > self._max_known:
                # Never what was just learned: whoever asked for it would ask for ever.
                self._forget()
            self._rights |= dict(zip(questions, replies.rights, strict=True))
            for key, question in questions.items():
                who = question[0]
                named = self._asked.setdefault((who.name, who.groups, who.home), {})
                named[key] = question
            self._paths |= dict(zip(asked.clusters, replies.clusters, strict=True))
            self._clusters |= dict(zip(asked.paths, replies.paths, strict=True))
