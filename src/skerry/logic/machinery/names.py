"""What names may look like: the grammars Kubernetes checks, and the words it uses to refuse.

Every check returns what is wrong, in the order Kubernetes reports it; an empty list means the
text will do. Length is counted in bytes, as the API server does, although the messages speak of
characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

Check = Callable[[str], list[str]]

MAX_LABEL_LENGTH: Final = 63
MAX_SUBDOMAIN_LENGTH: Final = 253
# Longer ones are refused, and not remembered.
_MAX_QUALIFIED_LENGTH: Final = MAX_SUBDOMAIN_LENGTH + 1 + MAX_LABEL_LENGTH
# Room for the five random characters a generated name ends with.
MAX_GENERATED_BASE_LENGTH: Final = MAX_LABEL_LENGTH - 5

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = _LABEL + r"(\." + _LABEL + ")*"
_DNS1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_WILDCARD = r"\*\." + _SUBDOMAIN
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_QUALIFIED})?"
_CONFIG_MAP_KEY = "[-._a-zA-Z0-9]+"
_PERCENT = "[0-9]+%"
_HTTP_HEADER = "[-A-Za-z0-9]+"
_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"


def too_long(length: int) -> str:
    """Return the refusal of a text longer than *length*."""
    return f"must be no more than {length} characters"


def out_of_range(lowest: int, highest: int) -> str:
    """Return the refusal of a number outside the two, which are allowed themselves."""
    return f"must be between {lowest} and {highest}, inclusive"


def _mismatch(text: str, pattern: str, *examples: str) -> str:
    """Return how Kubernetes says that a regular expression did not match."""
    if not examples:
        return f"{text} (regex used for validation is '{pattern}')"
    listed = " or ".join(f"'{example}', " for example in examples)
    return f"{text} (e.g. {listed}regex used for validation is '{pattern}')"


def _grammar(
    pattern: str, max_length: int, text: str, *examples: str
) -> Callable[[str], list[str]]:
    """Return a check of length and form; the common case costs one match."""
    fits = re.compile(pattern).fullmatch
    mismatch = _mismatch(text, pattern, *examples)

    def check(name: str) -> list[str]:
        # Whatever fits is ASCII, so its letters are its bytes.
        if fits(name) is not None and (not max_length or len(name) <= max_length):
            return []
        wrong = []
        if max_length and _bytes_exceed(name, max_length):
            wrong.append(too_long(max_length))
        if fits(name) is None:
            wrong.append(mismatch)
        return wrong

    return check


def _bytes_exceed(text: str, max_length: int) -> bool:
    return len(text) > max_length or (
        not text.isascii() and len(text.encode("utf-8", "surrogatepass")) > max_length
    )


dns1123_subdomain: Final[Check] = _grammar(
    _SUBDOMAIN,
    MAX_SUBDOMAIN_LENGTH,
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character",
    "example.com",
)
dns1035_label: Final[Check] = _grammar(
    _DNS1035,
    MAX_LABEL_LENGTH,
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character",
    "my-name",
    "abc-123",
)
wildcard_subdomain: Final[Check] = _grammar(
    _WILDCARD,
    MAX_SUBDOMAIN_LENGTH,
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, "
    "which must consist of lower case alphanumeric characters, '-' or '.' and end with an "
    "alphanumeric character",
    "*.example.com",
)
percent: Final[Check] = _grammar(
    _PERCENT,
    0,
    "a valid percent string must be a numeric string followed by an ending '%'",
    "1%",
    "93%",
)
http_header_name: Final[Check] = _grammar(
    _HTTP_HEADER,
    0,
    "a valid HTTP header must consist of alphanumeric characters or '-'",
    "X-Header-Name",
)
http_path: Final[Check] = _grammar(_HTTP_PATH, 0, "Invalid path")

_label_form = re.compile(_LABEL).fullmatch
_subdomain_form = re.compile(_SUBDOMAIN).fullmatch
_LABEL_MISMATCH = _mismatch(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character",
    _LABEL,
    "my-name",
    "123-abc",
)


def dns1123_label(text: str) -> list[str]:
    """Return what keeps *text* from being a DNS label; dots get a sentence of their own."""
    # Whatever fits is ASCII, so its letters are its bytes.
    if _label_form(text) is not None and len(text) <= MAX_LABEL_LENGTH:
        return []
    wrong = []
    if _bytes_exceed(text, MAX_LABEL_LENGTH):
        wrong.append(too_long(MAX_LABEL_LENGTH))
    if _label_form(text) is None:
        dotted = _subdomain_form(text) is not None
        wrong.append("must not contain dots" if dotted else _LABEL_MISMATCH)
    return wrong


def path_segment(text: str) -> list[str]:
    """Return what keeps *text* from being one segment of a URL path."""
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return path_segment_prefix(text)


def path_segment_prefix(text: str) -> list[str]:
    """Return what keeps *text* from beginning a path segment (as ``generateName`` does)."""
    return [f"may not contain '{bad}'" for bad in "/%" if bad in text]


_qualified_form = re.compile(_QUALIFIED).fullmatch
_QUALIFIED_MISMATCH = _mismatch(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character",
    _QUALIFIED,
    "MyName",
    "my.name",
    "123-abc",
)


def qualified_name(text: str) -> list[str]:
    """Return what keeps *text* from being ``[prefix/]name``: keys of labels and annotations."""
    wrong = _known_name(text) if len(text) <= _MAX_QUALIFIED_LENGTH else _qualified_name(text)
    return list(wrong) if wrong else []


def _qualified_name(text: str) -> tuple[str, ...]:
    parts = text.split("/")
    if len(parts) > 2:
        prefixed = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return (f"a qualified name {_QUALIFIED_MISMATCH} {prefixed}",)
    wrong: list[str] = []
    if len(parts) == 2:
        wrong += _prefix_part(parts[0])
    name = parts[-1]
    if not name:
        wrong.append("name part must be non-empty")
    elif _bytes_exceed(name, MAX_LABEL_LENGTH):
        wrong.append("name part " + too_long(MAX_LABEL_LENGTH))
    if _qualified_form(name) is None:
        wrong.append("name part " + _QUALIFIED_MISMATCH)
    return tuple(wrong)


# The same few label keys come with nearly every object.
_known_name = lru_cache(maxsize=4096)(_qualified_name)


def _prefix_part(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    return ["prefix part " + text for text in dns1123_subdomain(prefix)]


_value_form = re.compile(_LABEL_VALUE).fullmatch
_VALUE_MISMATCH = _mismatch(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character",
    _LABEL_VALUE,
    "MyValue",
    "my_value",
    "12345",
)


def label_value(text: str) -> list[str]:
    """Return what keeps *text* from being the value of a label; empty is a value."""
    if _value_form(text) is not None and len(text) <= MAX_LABEL_LENGTH:
        return []
    wrong = []
    if _bytes_exceed(text, MAX_LABEL_LENGTH):
        wrong.append(too_long(MAX_LABEL_LENGTH))
    if _value_form(text) is None:
        wrong.append(_VALUE_MISMATCH)
    return wrong


_PORT_CHARACTERS = re.compile("[-a-z0-9]+").fullmatch
_LETTER = re.compile("[a-z]").search


def port_name(text: str) -> list[str]:
    """Return what keeps *text* from naming a port (RFC 6335, in lower case)."""
    wrong = []
    if _bytes_exceed(text, 15):
        wrong.append(too_long(15))
    if _PORT_CHARACTERS(text) is None:
        wrong.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if _LETTER(text) is None:
        wrong.append("must contain at least one letter (a-z)")
    if "--" in text:
        wrong.append("must not contain consecutive hyphens")
    if text.startswith("-") or text.endswith("-"):
        wrong.append("must not begin or end with a hyphen")
    return wrong


def port_number(port: int) -> list[str]:
    """Return what keeps *port* from being a port one can connect to."""
    return [] if 1 <= port <= 65535 else [out_of_range(1, 65535)]


def _climbs(text: str) -> list[str]:
    """Say that *text*, used as a file name, would leave its directory."""
    if text in (".", ".."):
        return [f"must not be '{text}'"]
    if text.startswith(".."):
        return ["must not start with '..'"]
    return []


def relaxed_env_var_name(text: str) -> list[str]:
    """Return what keeps *text* from naming an environment variable in a 1.32 pod."""
    wrong = []
    if not text:
        wrong.append("environment variable name must be non-empty")
    if any(not " " <= char <= "~" or char == "=" for char in text):
        wrong.append(
            "a valid environment variable name must consist only of printable ASCII characters "
            "other than '='"
        )
    return wrong


_config_key_form = _grammar(
    _CONFIG_MAP_KEY,
    MAX_SUBDOMAIN_LENGTH,
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    "key.name",
    "KEY_NAME",
    "key-name",
)


def config_map_key(text: str) -> list[str]:
    """Return what keeps *text* from being a key of a ConfigMap or Secret: a safe file name."""
    wrong = _config_key_form(text)
    return wrong + _climbs(text) if text.startswith(".") else wrong


def generated_name(base: str, suffix: str) -> str:
    """Return *base* with *suffix*, the base cut so that the whole stays a DNS label."""
    return base[:MAX_GENERATED_BASE_LENGTH] + suffix
