"""A process that writes to a SQLite store as fast as it can until it is killed.

Prints ``key revision`` for each write once it is acknowledged, never before.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from skerry.kit.ids import SystemIds
from skerry.store.base import Write
from skerry.store.sqlite import SqliteStore

WRITERS = 16


async def main(path: str, life: str, compacting: str) -> None:
    store = await SqliteStore.open(Path(path), SystemIds())

    async def write(worker: int) -> None:
        number = 0
        while True:
            number += 1
            keys = [f"/{life}/{worker}/{number}", f"/last/{worker}", f"/gone/{worker}"]
            values = [keys[0].encode() * 20, keys[0].encode(), None if number % 2 else b"here"]
            writes = [Write(k, v) for k, v in zip(keys, values, strict=True)]
            revisions = await store.commit(writes)
            lines = (f"{k} {r}\n" for k, r in zip(keys, revisions, strict=True) if r)
            os.write(1, "".join(lines).encode())

    async def compact() -> None:
        while True:
            await store.compact(await store.revision())
            await asyncio.sleep(0)

    others = [compact()] if compacting == "compacting" else []
    await asyncio.gather(*others, *(write(worker) for worker in range(WRITERS)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
