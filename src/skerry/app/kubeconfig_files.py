"""Kubeconfig files as kubectl reads and writes them.

Several files may be named by ``KUBECONFIG``: of equal names the first wins, and a change is
written to the file the entry came from. Edits hold kubectl's own lock (``<file>.lock``), read the
file again under it, and replace it in one step, so nobody ever sees half of it and what others
wrote meanwhile stays. Comments do not survive, as with kubectl.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import yaml

from skerry.wire.kubeconfig import (
    Entry,
    Kubeconfig,
    KubeconfigError,
    document_of,
    merged,
    with_entry,
)

# The context of a plain server's admin.kubeconfig that is the server's own.
ADMIN_CONTEXT = "skerry"
# kubectl holds its lock for milliseconds; a lock older than this was left by something that died.
_LOCK_PATIENCE_SECONDS = 5.0
_LOCK_RETRY_SECONDS = 0.02
# Section, name and content of an entry to be put into a file.
_Edit = tuple[str, str, Entry]


def load(files: Sequence[Path]) -> Kubeconfig:
    """Read and merge *files*; those that do not exist are empty."""
    return merged(files, [(path, _read(path)) for path in files])


def home_of(config: Kubeconfig, section: str, name: str) -> Path:
    """Return the file an entry is written to."""
    default = next((path for path in config.files if path.exists()), config.files[-1])
    return config.origins.get((section, name)) or default


def store(
    before: Kubeconfig,
    *,
    clusters: Mapping[str, Entry] | None = None,
    contexts: Mapping[str, Entry] | None = None,
    users: Mapping[str, Entry] | None = None,
    current: str = "",
) -> None:
    """Put entries into the files they belong to and make *current* the current context."""
    changes: dict[Path, list[_Edit]] = {}
    given = {"clusters": clusters or {}, "users": users or {}, "contexts": contexts or {}}
    for section, entries in given.items():
        for name, entry in entries.items():
            changes.setdefault(home_of(before, section, name), []).append((section, name, entry))
    if current:
        changes.setdefault(home_of(before, "current-context", ""), [])
    for path, edits in changes.items():

        def change(document: Entry, path: Path = path, edits: list[_Edit] = edits) -> Entry:
            for section, name, entry in edits:
                document = with_entry(document, section, name, entry)
            if current and path == home_of(before, "current-context", ""):
                document = {**document, "current-context": current}
            return document

        edit(path, change)


def remove(
    before: Kubeconfig,
    *,
    clusters: Sequence[str] = (),
    users: Sequence[str] = (),
    contexts: Sequence[str] = (),
) -> None:
    """Take entries out of the files they are in; a current context that goes leaves none."""
    given = {"clusters": clusters, "users": users, "contexts": contexts}

    def change(document: Entry) -> Entry:
        kept = {
            section: [each for each in document[section] or () if each.get("name") not in names]
            for section, names in given.items()
            if section in document
        }
        gone = document.get("current-context") in contexts
        return {**document, **kept, **({"current-context": ""} if gone else {})}

    for path in before.files:
        if path.exists():
            edit(path, change)


def edit(
    path: Path, change: Callable[[Entry], Entry], patience: float = _LOCK_PATIENCE_SECONDS
) -> None:
    """Replace what a file says by what *change* makes of it; untouched when that is the same.

    Somebody else's lock is waited for *patience* seconds.
    """
    with _locked(path, patience):
        document = _read(path)
        changed = change(document)
        if changed != document or not path.exists():
            _replace(path, changed)


def _read(path: Path) -> Entry:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {"apiVersion": "v1", "kind": "Config"}
    except OSError as error:
        raise KubeconfigError(f"open {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise KubeconfigError(f"error loading config file {str(path)!r}: {error}") from error
    try:
        document = document_of(text)
    except KubeconfigError as error:
        raise KubeconfigError(f"error loading config file {str(path)!r}: {error}") from error
    return document or {"apiVersion": "v1", "kind": "Config"}


@contextlib.contextmanager
def _locked(path: Path, patience: float) -> Iterator[None]:
    """Hold the lock kubectl takes for *path*."""
    lock = Path(f"{path}.lock")
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise KubeconfigError(f"mkdir {lock.parent}: {error.strerror}") from error
    deadline = time.monotonic() + patience  # noqa: TID251 - a command, not a server
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            break
        except FileExistsError as error:
            if time.monotonic() > deadline:  # noqa: TID251 - as above
                raise KubeconfigError(
                    f"open {lock}: file exists; remove it if nothing writes {path.name} any more"
                ) from error
            # A lock file tells nobody when it goes; kubectl itself would give up at once.
            time.sleep(_LOCK_RETRY_SECONDS)
        except OSError as error:
            raise KubeconfigError(f"open {lock}: {error.strerror}") from error
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def _replace(path: Path, document: Entry) -> None:
    """Write *document* in place of the file, following links and keeping its mode and owner."""
    target = Path(os.path.realpath(path))
    text = yaml.dump(
        document, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=4096
    )
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                _liken(file.fileno(), target)
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise KubeconfigError(f"write {path}: {error.strerror}") from error


def _liken(descriptor: int, target: Path) -> None:
    """Give a new file, which is its owner's alone, the mode and owner of the one it replaces."""
    if not target.exists():
        return
    found = target.stat()
    # Only root may give files away; who else may replace a file of another's keeps the new one.
    with contextlib.suppress(PermissionError):
        os.fchown(descriptor, found.st_uid, found.st_gid)
    os.fchmod(descriptor, found.st_mode & 0o777)
