"""``kubectl ws``: where am I, go there, make one, show all.

The plugin keeps two entries of its own in the kubeconfig, ``workspace.kcp.io/current`` and
``workspace.kcp.io/previous``; going somewhere makes the first the current context. The host stays
that of the current server, only the path changes, so that whatever way leads to the hub (a proxy,
a tunnel, another name) still does afterwards.
"""

from __future__ import annotations

import difflib
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from skerry.app.kubeconfig_files import store
from skerry.cli.flags import Parsed, UsageError, parse
from skerry.cli.hub_client import RequestFailed
from skerry.cli.printing import show, show_lines, show_text
from skerry.cli.session import PATH, PREFIX, CommandError, Session, split_url
from skerry.wire.kubeconfig import KubeconfigError

CURRENT = "workspace.kcp.io/current"
PREVIOUS = "workspace.kcp.io/previous"
_WORKSPACES = "apis/tenancy.kcp.io/v1alpha1/workspaces"
_READY_SECONDS = 60
_POLL_SECONDS = 0.2

HELP = """Manages KCP workspaces

Usage:
  workspace [create|create-context|use|current|tree|<workspace>|..|.|-|~|<root:absolute:workspace>]

Examples:
  # shows the workspace you are currently using
  kubectl ws .

  # enter a workspace below the current one, or anywhere by its path
  kubectl ws my-workspace
  kubectl ws root:default:my-workspace

  # enter the parent, the previous or the home workspace
  kubectl ws ..
  kubectl ws -
  kubectl ws '~'

  # create a workspace and immediately enter it
  kubectl ws create my-workspace --enter

  # keep the current workspace as a context of its own
  kubectl ws create-context

Available Commands:
  create          Creates a new workspace [--type=<type>] [--enter] [--ignore-existing]
                  [--location-selector=<selector>]
  create-context  Create a kubeconfig context for the current workspace [--overwrite]
  current         Print the current workspace. Same as 'kubectl ws .'. [--short]
  tree            Print the current workspace tree. [-f|--full]
  use             Uses the given workspace as the current workspace. [--short]

Flags: --kubeconfig --context --user -s|--server --token --certificate-authority
       --tls-server-name --insecure-skip-tls-verify -n|--namespace -h|--help
"""


# -- going somewhere -------------------------------------------------------------------------


def use(session: Session, name: str, *, short: bool) -> None:
    """Make the workspace *name* the current one and say so."""
    if session.context_name not in session.config.contexts:
        raise CommandError(f'current "{session.context_name}" context not found')
    if name == "-":
        _back(session, short=short)
    elif name == ".":
        print_current(session.target.server, short=short)
    else:
        server, type_name = _destination(session, name)
        enter(session, server, type_name, short=short)
        if not name:
            show(
                "Note: 'kubectl ws' now matches 'cd' semantics: go to home workspace. "
                "'kubectl ws -' to go back. 'kubectl ws .' to print current workspace."
            )


def _destination(session: Session, name: str) -> tuple[str, str]:
    """Return the server URL *name* leads to, and the type where it was learned on the way."""
    if name in ("", "~", os.path.expanduser("~")):
        home = session.client.get(session.url("root", f"{_WORKSPACES}/~"))
        split = split_url(home["spec"]["URL"])
        if split is None:
            raise CommandError(f'current URL "{home["spec"]["URL"]}" does not point to a workspace')
        return session.url(split[1], "").rstrip("/"), ""
    base, current = session.base_and_path()
    if name == "..":
        return f"{base}{PREFIX}{_parent(current)}", ""
    if not PATH.match(name):
        raise CommandError(f"invalid workspace name format: {name}")
    if ":" in name:
        if not name.startswith("system:"):
            _check_reachable(session, name)
        return f"{base}{PREFIX}{name}", ""
    if name == "root":
        return f"{base}{PREFIX}root", ""
    workspace = _child(session, current, name)
    if (workspace.get("status") or {}).get("phase") != "Ready":
        raise CommandError(f'workspace "{name}" is not ready')
    return f"{base}{PREFIX}{current}:{name}", type_of(workspace)


def _child(session: Session, parent: str, name: str) -> Mapping[str, Any]:
    """Return the Workspace *name* below *parent*."""
    try:
        return session.client.get(session.url(parent, f"{_WORKSPACES}/{name}"))
    except RequestFailed as error:
        _refuse_missing(session, parent)
        like = difflib.get_close_matches(name, [word for word in _OWN_FLAGS if word], cutoff=0.8)
        if error.code != 404 or not like:
            raise
        raise CommandError(f"{error}; there is a command kubectl ws {like[0]}") from error


def _parent(path: str) -> str:
    above = path.rpartition(":")[0]
    if above:
        return above
    if path == "root":
        raise CommandError(f'current workspace is "{path}"')
    raise CommandError(f'current workspace "{path}" has no parent')


def _check_reachable(session: Session, path: str) -> None:
    """Raise unless the workspace exists, as far as one may know, and lets us in."""
    _refuse_missing(session, path)
    try:
        groups = session.client.get(session.url(path, "apis"))
    except RequestFailed as error:
        if error.code != 403:
            raise
        groups = {}
    if not groups.get("groups"):
        raise CommandError(f"access to workspace {path} denied")


def _refuse_missing(session: Session, path: str) -> None:
    """Raise if one of the workspaces on the way to *path* is known not to exist.

    The hub denies access to what is not there as it does to what others have. But whoever may read
    the workspaces of a parent may know which it has, so they are asked for from the top down.
    """
    names = path.split(":")
    for number in range(1, len(names)):
        parent, whole = ":".join(names[:number]), ":".join(names[: number + 1])
        try:
            session.client.get(session.url(parent, f"{_WORKSPACES}/{names[number]}"))
        except RequestFailed as error:
            if error.code == 404:
                raise CommandError(f'workspace "{whole}" not found') from error
            if error.code == 0:
                raise


def type_of(workspace: Mapping[str, Any]) -> str:
    """Return a workspace's type as it is shown."""
    reference = (workspace.get("spec") or {}).get("type") or {}
    return ":".join(part for part in (reference.get("path"), reference.get("name")) if part)


def enter(session: Session, server: str, type_name: str, *, short: bool) -> None:
    """Write the kubeconfig so that *server* is the current workspace."""
    config = session.config
    context = config.contexts[session.context_name]
    cluster = config.clusters.get(context.get("cluster", ""))
    if cluster is None:
        raise CommandError(f'cluster "{context.get("cluster", "")}" not found in kubeconfig')
    clusters = {CURRENT: {**cluster, "server": server}}
    previous = context
    if context.get("cluster") == CURRENT:
        previous = {**context, "cluster": PREVIOUS}
        clusters[PREVIOUS] = cluster
    contexts = {CURRENT: {**context, "cluster": CURRENT}, PREVIOUS: previous}
    store(config, clusters=clusters, contexts=contexts, current=CURRENT)
    _warn_of_claims(session, server)
    print_current(server, type_name, short=short)


def _back(session: Session, *, short: bool) -> None:
    """Swap the current and the previous workspace."""
    config = session.config
    previous = config.contexts.get(PREVIOUS)
    if previous is None:
        raise CommandError("no previous workspace found in kubeconfig")
    context = config.contexts[session.context_name]
    clusters = {}
    for entry, own, other in ((context, CURRENT, PREVIOUS), (previous, PREVIOUS, CURRENT)):
        if entry.get("cluster") == own:
            if own not in config.clusters:
                raise CommandError(f'cluster "{own}" not found in kubeconfig')
            clusters[other] = config.clusters[own]
    contexts = {
        CURRENT: _moved(previous, PREVIOUS, CURRENT),
        PREVIOUS: _moved(context, CURRENT, PREVIOUS),
    }
    store(config, clusters=clusters, contexts=contexts, current=CURRENT)
    reached = {**config.clusters, **clusters}.get(contexts[CURRENT].get("cluster", ""), {})
    server = reached.get("server", "")
    _warn_of_claims(session, server)
    print_current(server, short=short)


def _moved(context: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    return {**context, "cluster": new} if context.get("cluster") == old else context


def _warn_of_claims(session: Session, server: str) -> None:
    """Tell of permission claims nobody has accepted or rejected yet."""
    try:
        listed = session.client.get(f"{server}/apis/apis.kcp.io/v1alpha1/apibindings")
    except RequestFailed as error:
        if error.code != 403:
            show(f"error checking APIBindings: {error}", error=True)
        return
    for binding in listed.get("items") or []:
        for line in _unanswered(binding):
            show(line)


def _unanswered(binding: Mapping[str, Any]) -> list[str]:
    name: str = binding["metadata"]["name"]
    lines: list[str] = []
    answers = (binding.get("spec") or {}).get("permissionClaims") or []
    for claim in (binding.get("status") or {}).get("exportPermissionClaims") or []:
        given = [a for a in answers if {**a, "state": ""} == {**claim, "state": ""}]
        shown = _claim_text(claim)
        if not given:
            lines += (
                f"Warning: claim for {shown} exported but not specified on APIBinding {name}",
                "Add this claim to the APIBinding's Spec.",
            )
        if not any(answer.get("state") in ("Accepted", "Rejected") for answer in given):
            lines.append(
                f"Warning: claim for {shown} specified on APIBinding {name} but not accepted "
                "or rejected."
            )
    return lines


def _claim_text(claim: Mapping[str, Any]) -> str:
    shown = ".".join(part for part in (claim.get("resource"), claim.get("group")) if part)
    return f"{shown}:{claim['identityHash']}" if claim.get("identityHash") else shown


def print_current(server: str, type_name: str = "", *, short: bool) -> None:
    """Say which workspace *server* is."""
    split = split_url(server)
    if split is None:
        if not short:
            show(f'Current workspace is the URL "{server}".')
    elif short:
        show(split[1])
    else:
        of_type = f" (type {type_name})" if type_name else ""
        show(f'Current workspace is "{split[1]}"{of_type}.')


# -- the other commands ----------------------------------------------------------------------


def create(session: Session, name: str, flags: Parsed) -> None:
    """Create the workspace *name* below the current one, and wait until it is ready."""
    _, current = session.base_and_path()
    wanted = flags.value("type")
    if flags.on("ignore-existing") and wanted and not f"{wanted}:".startswith("root:"):
        raise CommandError("--ignore-existing must not be used with non-absolute type path")
    path, _, type_name = wanted.rpartition(":")
    spec: dict[str, Any] = {}
    if wanted:
        spec["type"] = {"name": type_name.lower(), **({"path": path} if path else {})}
    if flags.value("location-selector"):
        spec["location"] = {"selector": selector_of(flags.value("location-selector"))}
    workspace = {
        "apiVersion": "tenancy.kcp.io/v1alpha1",
        "kind": "Workspace",
        "metadata": {"name": name},
        "spec": spec,
    }
    url = session.url(current, _WORKSPACES)
    existing = False
    try:
        workspace = session.client.post(url, workspace)
    except RequestFailed as error:
        if error.reason != "AlreadyExists" or not flags.on("ignore-existing"):
            raise
        existing = True
        workspace = session.client.get(f"{url}/{name}")
    _await_ready(session, url, workspace, wanted, existing=existing)
    if flags.on("enter"):
        base, _ = session.base_and_path()
        enter(session, f"{base}{PREFIX}{current}:{name}", type_of(workspace), short=False)


def _await_ready(
    session: Session, url: str, workspace: dict[str, Any], wanted: str, *, existing: bool
) -> None:
    name, found = workspace["metadata"]["name"], type_of(workspace)
    shown = f'Workspace "{name}" (type {found})'
    ready = _is_ready(workspace)
    if existing:
        if wanted and wanted.lower() != found:
            raise CommandError(
                f'workspace "{name}" cannot be created with type {wanted}, it already exists '
                f"with different type {found}"
            )
        show(f"{shown} already exists.{'' if ready else ' Waiting for it to be ready...'}")
    elif not ready:
        show(f"{shown} created. Waiting for it to be ready...", flush=True)
    left = int(_READY_SECONDS / _POLL_SECONDS)
    while not ready:
        if left == 0:
            raise CommandError("timed out waiting for the condition")
        left -= 1
        time.sleep(_POLL_SECONDS)
        ready = _is_ready(session.client.get(f"{url}/{name}"))
    show(f"{shown} is ready to use.")


def _is_ready(workspace: Mapping[str, Any]) -> bool:
    return bool((workspace.get("status") or {}).get("phase") == "Ready")


def selector_of(text: str) -> dict[str, Any]:
    """Return a label selector written as ``a=b,c=d`` in its structured form."""
    labels = {}
    for part in filter(None, text.split(",")):
        key, equals, value = part.replace("==", "=").partition("=")
        if not equals or not key or "!" in key:
            raise CommandError(f"invalid location selector: {text!r}: want key=value,...")
        labels[key.strip()] = value.strip()
    return {"matchLabels": labels}


def create_context(session: Session, name: str, *, overwrite: bool) -> None:
    """Keep the current workspace as the context *name* and switch to it."""
    config = session.config
    context = config.contexts.get(session.context_name)
    if context is None:
        raise CommandError(f'current context "{session.context_name}" is not found in kubeconfig')
    cluster = config.clusters.get(context.get("cluster", ""))
    if cluster is None:
        found = context.get("cluster", "")
        raise CommandError(f'current cluster "{found}" is not found in kubeconfig')
    split = split_url(cluster.get("server", ""))
    if split is None:
        raise CommandError(
            f'current URL "{cluster.get("server", "")}" does not point to a workspace'
        )
    name = name or split[1]
    existed = name in config.contexts
    if existed and not overwrite:
        raise CommandError(
            f'context "{name}" already exists in kubeconfig, use --overwrite to update it'
        )
    store(
        config,
        clusters={name: cluster},
        contexts={name: {**context, "cluster": name}},
        current=name,
    )
    if existed and config.current == name:
        show(f'Updated context "{name}".')
    else:
        show(f'{"Updated" if existed else "Created"} context "{name}" and switched to it.')


def tree(session: Session, *, full: bool) -> None:
    """Print the workspaces below the current one."""
    _, current = session.base_and_path()
    name = current if full else current.rpartition(":")[2]
    lines = [".", f"└── {name}"]
    _branches(session, current, name if full else "", "    ", lines)
    show_lines([*lines, ""])


def _branches(session: Session, path: str, full_name: str, indent: str, lines: list[str]) -> None:
    try:
        found = session.client.get(session.url(path, _WORKSPACES)).get("items") or []
    except RequestFailed as error:
        if error.code != 404:
            raise
        return
    for number, workspace in enumerate(found, 1):
        name = workspace["metadata"]["name"]
        shown = f"{full_name}:{name}" if full_name else name
        last = number == len(found)
        lines.append(f"{indent}{'└── ' if last else '├── '}{shown}")
        split = split_url((workspace.get("spec") or {}).get("URL", ""))
        below = f"{indent}{'    ' if last else '│   '}"
        if split is not None:
            _branches(session, split[1], shown if full_name else "", below, lines)


# -- the command line ------------------------------------------------------------------------

_OWN_FLAGS: dict[str, dict[str, bool]] = {
    "": {"short": True},
    "use": {"short": True},
    "current": {"short": True},
    "create": {"type": False, "enter": True, "ignore-existing": True, "location-selector": False},
    "create-context": {"overwrite": True},
    "tree": {"full": True},
}


def run(words: Sequence[str], environment: Mapping[str, str]) -> None:
    """Do what the command line says."""
    command, rest = _command(words)
    flags = parse(rest, _OWN_FLAGS[command], {"f": "full"} if command == "tree" else None)
    arguments = flags.arguments
    if command == "create" and len(arguments) != 1 and not flags.on("help"):
        raise UsageError(f"accepts 1 arg(s), received {len(arguments)}")
    if flags.on("help") or (command == "use" and not arguments):
        show_text(f"{HELP}\n")
        return
    max_arguments = {"current": 0, "tree": 0}.get(command, 1)
    if len(arguments) > max_arguments:
        if not command:
            raise _unknown_command(arguments[0])
        raise UsageError(f"accepts {max_arguments} arg(s), received {len(arguments)}")
    session = Session.open(flags, environment)
    name = arguments[0] if arguments else ""
    actions: dict[str, Callable[[], None]] = {
        "": lambda: use(session, name, short=flags.on("short")),
        "use": lambda: use(session, name, short=flags.on("short")),
        "current": lambda: print_current(session.target.server, short=flags.on("short")),
        "create": lambda: create(session, name, flags),
        "create-context": lambda: create_context(session, name, overwrite=flags.on("overwrite")),
        "tree": lambda: tree(session, full=flags.on("full")),
    }
    actions[command]()


def _command(words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the subcommand and the other words; flags may stand before it."""
    parsed = parse(words, {name: kind for own in _OWN_FLAGS.values() for name, kind in own.items()},
                   {"f": "full"})  # fmt: skip
    first = parsed.arguments[0] if parsed.arguments else ""
    if first and first in _OWN_FLAGS:
        rest = list(words)
        rest.remove(first)
        return first, rest
    return "", list(words)


def _unknown_command(word: str) -> UsageError:
    """Return what kubectl says of a command it does not have, with those that are much like it."""
    like = difflib.get_close_matches(word, [name for name in _OWN_FLAGS if name])
    hint = "".join(f"\n\t{name}" for name in like)
    did_you_mean = f"\nDid you mean this?{hint}\n\n" if like else ""
    advice = f"{did_you_mean}Run 'kubectl ws --help' for usage.\n"
    return UsageError(f'unknown command "{word}" for "workspace"', advice)


# What a shell says of a program that a broken pipe has ended.
_BROKEN_PIPE = 141


def call(
    words: Sequence[str],
    environment: Mapping[str, str],
    action: Callable[[Sequence[str], Mapping[str, str]], None],
    prefix: str = "Error",
) -> int:
    """Run *action*, tell of mistakes as kubectl's plugins do, and return the exit code."""
    try:
        action(words, environment)
        sys.stdout.flush()
    except BrokenPipeError:
        # Nobody reads on; what is still to be flushed at the end has nowhere to go either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except (CommandError, KubeconfigError, RequestFailed, UsageError) as error:
        show(f"{prefix}: {error}", error=True)
        if isinstance(error, UsageError):
            show_text(error.advice, error=True)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def main() -> None:
    """Run ``kubectl ws``."""
    # A kubectl plugin finds the kubeconfig by the environment, as kubectl is.
    sys.exit(call(sys.argv[1:], os.environ, run))  # noqa: TID251
