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
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import yaml

from skerry.wire.kubeconfig import SECTIONS, Entry, Kubeconfig, KubeconfigError, document_of, merged

# kubectl holds its lock for milliseconds; a lock older than this was left by something that died.
_LOCK_PATIENCE_SECONDS = 5.0
_LOCK_RETRY_SECONDS = 0.02


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
    changes: dict[Path, list[tuple[str, str, Entry]]] = {}
    given = {"clusters": clusters or {}, "users": users or {}, "contexts": contexts or {}}
    for section, entries in given.items():
        for name, entry in entries.items():
            changes.setdefault(home_of(before, section, name), []).append((section, name, entry))
    if current:
        changes.setdefault(home_of(before, "current-context", ""), [])
    for path, edits in changes.items():
        with _locked(path):
            document = _read(path)
            for section, name, entry in edits:
                _put(document, section, name, entry)
            if current and path == home_of(before, "current-context", ""):
                document["current-context"] = current
            _replace(path, document)


def remove(
    before: Kubeconfig,
    *,
    clusters: Sequence[str] = (),
    users: Sequence[str] = (),
    contexts: Sequence[str] = (),
) -> None:
    """Take entries out of the files they are in; a current context that goes leaves none."""
    given = {"clusters": clusters, "users": users, "contexts": contexts}
    for path in before.files:
        if not path.exists():
            continue
        with _locked(path):
            document = _read(path)
            for section, names in given.items():
                kept = [e for e in document.get(section) or [] if e.get("name") not in names]
                if section in document:
                    document[section] = kept
            if document.get("current-context") in contexts:
                document["current-context"] = ""
            _replace(path, document)


def _put(document: Entry, section: str, name: str, entry: Entry) -> None:
    items = document.get(section)
    if not isinstance(items, list):
        items = document[section] = []
    inner = SECTIONS[section]
    for item in items:
        if item.get("name") == name:
            item[inner] = entry
            return
    items.append({"name": name, inner: entry})


def _read(path: Path) -> Entry:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {"apiVersion": "v1", "kind": "Config"}
    except OSError as error:
        raise KubeconfigError(f"open {path}: {error.strerror}") from error
    try:
        document = document_of(text)
    except KubeconfigError as error:
        raise KubeconfigError(f"error loading config file {str(path)!r}: {error}") from error
    return document or {"apiVersion": "v1", "kind": "Config"}


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock kubectl takes for *path*."""
    lock = Path(f"{path}.lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + _LOCK_PATIENCE_SECONDS  # noqa: TID251 - a command, not a server
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            break
        except FileExistsError as error:
            if time.monotonic() > deadline:  # noqa: TID251 - as above
                raise KubeconfigError(f"open {lock}: file exists") from error
            # A lock file tells nobody when it goes; kubectl itself would give up at once.
            time.sleep(_LOCK_RETRY_SECONDS)
        except OSError as error:
            raise KubeconfigError(f"open {lock}: {error.strerror}") from error
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def _replace(path: Path, document: Entry) -> None:
    """Write *document* in place of the file, following links and keeping its mode."""
    target = Path(os.path.realpath(path))
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
    text = yaml.dump(
        document, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=4096
    )
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), mode)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
