"""``python -m tests.kit.differential --kubeconfig F``: see the package."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from pathlib import Path

from skerry.app.hub import hub_flavor
from skerry.app.settings import ServerSettings, StoreSettings
from skerry.app.standalone import PLAIN_SERVER, serving
from skerry.runtime import kubeconfig
from tests.kit.differential.asking import Answered, ask_everything
from tests.kit.differential.recording import differences, listed, load, save


async def of_ours(*, hub: bool) -> dict[str, Answered]:
    """Ask a plain server of ours, or a hub in the workspace root, started for the purpose."""
    with tempfile.TemporaryDirectory(prefix="skerry-differential-") as folder:
        settings = ServerSettings(
            data_dir=Path(folder), port=0, store=StoreSettings(kind="memory"), controllers="none"
        )
        async with serving(settings, hub_flavor() if hub else PLAIN_SERVER) as server:
            return await of(server.kubeconfig)


async def of(path: Path) -> dict[str, Answered]:
    """Ask the server that a kubeconfig leads to."""
    transport = kubeconfig.connect(kubeconfig.load([path]))
    try:
        return await ask_everything(transport)
    finally:
        await transport.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kit.differential", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, help="the server to compare with")
    parser.add_argument(
        "--hub", action="store_true", help="that server is a kcp: compare a hub of ours"
    )
    parser.add_argument("--record", type=Path, help="keep that server's answers in this file")
    parser.add_argument("--recorded", type=Path, help="compare with what was kept")
    parser.add_argument("--list", type=Path, help="write the names of what differs to this file")
    arguments = parser.parse_args()
    if arguments.kubeconfig:
        theirs = asyncio.run(of(arguments.kubeconfig))
        if arguments.record:
            save(theirs, arguments.record)
    elif arguments.recorded:
        theirs = load(arguments.recorded)
    else:
        parser.error("say --kubeconfig or --recorded")
    ours = asyncio.run(of_ours(hub=arguments.hub))
    found = differences(ours, theirs)
    for name, fields in found.items():
        print(f"{name}: {', '.join(fields)}")
        for field in fields:
            ours_said, theirs_said = fields[field]
            print(f"    {field}: ours {ours_said}\n    {' ' * len(field)}  theirs {theirs_said}")
        print(f"    {ours[name].message[:200] if name in ours else ''}")
        print(f"    {theirs[name].message[:200] if name in theirs else ''}")
    if arguments.list:
        arguments.list.write_text(listed(found))
    counts = Counter(field for fields in found.values() for field in fields)
    print(f"{len(ours)} requests, {len(found)} answered differently: {dict(counts)}")
    crashed = {name for name, each in ours.items() if each.status == 500}
    if crashed - {name for name, each in theirs.items() if each.status == 500}:
        print(f"only ours answered 500: {sorted(crashed)}")
        return 2
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
