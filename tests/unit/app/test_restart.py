from datetime import timedelta

from skerry.app.restart import restart_on_unavailable
from skerry.kit.clock import LoopClock
from skerry.store.base import Unavailable


class _Impatient(LoopClock):
    def __init__(self) -> None:
        super().__init__()
        self.slept = timedelta()

    async def sleep(self, seconds: float) -> None:
        self.slept += timedelta(seconds=seconds)


async def test_a_chore_begins_again_while_the_store_is_out_of_reach() -> None:
    clock, tries = _Impatient(), []

    async def chore() -> None:
        tries.append(1)
        if len(tries) < 3:
            raise Unavailable("etcd is out of reach")

    await restart_on_unavailable("chore", chore, clock)
    assert len(tries) == 3
    assert clock.slept == timedelta(seconds=2)
