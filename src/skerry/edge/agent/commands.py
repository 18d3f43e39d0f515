"""Commands run beside a container: for probes, hooks and ``kubectl exec``."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Sequence

from skerry.edge.agent.runtime import CannotStart, ContainerRuntime, ContainerSpec

# More of a probe's output than this nobody reads.
_OUTPUT_BYTES = 10 * 1024


async def run_beside(
    runtime: ContainerRuntime, spec: ContainerSpec, argv: Sequence[str], seconds: float
) -> tuple[int, str]:
    """Run a command to its end; returns its exit code and the beginning of its output.

    Whatever it started is killed when the time is up.
    """
    if not argv:
        return 126, "no command given"
    try:
        run = runtime.beside(spec, argv)
    except CannotStart as error:
        return 126, str(error)
    try:
        process = await asyncio.create_subprocess_exec(
            *run.argv,
            env=dict(run.environment),
            cwd=run.working_directory,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        return 127, f"{run.argv[0]}: {error.strerror}"
    try:
        async with asyncio.timeout(seconds):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return process.returncode or 0, output[:_OUTPUT_BYTES].decode(errors="replace")
