"""Users that an image names instead of numbering, found in its own files."""

from __future__ import annotations

from pathlib import Path

from skerry.edge.agent.image_layout import ImageError, inside
from skerry.kit.text import whole_number

# More than any image's; a file of users is not a place to put gigabytes.
_MAX_BYTES = 1024 * 1024


class UnknownUser(Exception):
    """An image names a user or a group that its files do not know."""


def numbers_of(name: str, root: Path) -> tuple[int, int]:
    """Return the user and the group that ``USER`` of an image stands for; raises ``UnknownUser``.

    Links in the image are followed as its containers would follow them.
    """
    user, _, group = name.partition(":")
    entry = _entry(root, "passwd", user)
    number = whole_number(user)
    if number is not None:
        found = (number, (whole_number(entry[3]) or 0) if entry else 0)
    elif entry is not None:
        found = (int(entry[2]), whole_number(entry[3]) or 0)
    else:
        raise UnknownUser(f"unable to find user {user}: no matching entries in passwd file")
    if not group:
        return found
    other = whole_number(group)
    if other is not None:
        return found[0], other
    known = _entry(root, "group", group)
    if known is None:
        raise UnknownUser(f"unable to find group {group}: no matching entries in group file")
    return found[0], int(known[2])


def _entry(root: Path, file: str, name: str) -> list[str] | None:
    try:
        with inside(root, ["etc", file]).open("rb") as opened:
            text = opened.read(_MAX_BYTES).decode(errors="replace")
    except (OSError, ImageError):
        return None
    for line in text.splitlines():
        fields = line.split(":")
        if len(fields) < 4 or whole_number(fields[2]) is None:
            continue
        if name in (fields[0], fields[2]):
            return fields
    return None
