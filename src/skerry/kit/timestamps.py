"""Times as text, in the forms Kubernetes writes and reads. Pure: reads no clock."""

from __future__ import annotations

from datetime import UTC, datetime


def rfc3339(moment: datetime) -> str:
    """Return *moment* as Kubernetes writes a Time: UTC, whole seconds, ``Z``."""
    # Not strftime, which costs ten times as much; every write needs this once or twice.
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    second, text = _LAST[0]
    passed = moment - second
    if passed.seconds or passed.days:
        text = moment.isoformat(timespec="seconds")[:19] + "Z"
        _LAST[0] = (moment.replace(microsecond=0), text)
    return text


# The second that was written last, and how: many writes happen in one second.
_LAST = [(datetime(1970, 1, 1, tzinfo=UTC), "1970-01-01T00:00:00Z")]


def rfc3339_micro(moment: datetime) -> str:
    """Return *moment* as Kubernetes writes a MicroTime: UTC, six decimals, ``Z``."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")[:26] + "Z"


def parse_rfc3339(text: str) -> datetime:
    """Return the aware moment *text* names; raises ValueError when it names none."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"time {text!r}: want an RFC 3339 time with a zone")
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"time {text!r}: want one of the years 1 to 9999") from error
