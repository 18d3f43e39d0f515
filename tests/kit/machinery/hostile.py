"""YAML texts that were, or might be, a way to keep a server busy or to crash it."""

from __future__ import annotations

from typing import Final


def alias_bomb(lines: int) -> bytes:
    """Ten times as many values for every further line."""
    first = b"a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    return first + b"".join(
        b"%c: &%c [%s]\n" % (98 + i, 98 + i, b", ".join([b"*%c" % (97 + i)] * 10))
        for i in range(lines)
    )


def merge_chain(links: int) -> bytes:
    """Every mapping merges the one before, so that they grow by one key each."""
    return b"x0: &x0 {k0: 1}\n" + b"".join(
        b"x%d: &x%d {<<: *x%d, k%d: 1}\n" % (i, i, i - 1, i) for i in range(1, links)
    )


def deep_by_aliases(links: int) -> bytes:
    """Each value stands twenty levels deep in the next."""
    return b"x0: &x0 []\n" + b"".join(
        b"x%d: &x%d %b*x%d%b\n" % (i, i, b"[" * 20, i - 1, b"]" * 20) for i in range(1, links)
    )


REFUSED: Final = {
    "flow sequences": b"x: " + b"[" * 40_000 + b"]" * 40_000,
    "flow sequences, never closed": b"[" * 3_000_000,
    "flow mappings": b"x: " + b"{a: " * 40_000 + b"}" * 40_000,
    "flow mappings as keys": b"x: " + b"{? " * 40_000,
    "flow sequences, each on a line": b"x: " + b"[\n" * 40_000,
    "flow pairs": b"[a: " * 40_000 + b"]" * 40_000,
    "block sequences": b"- " * 40_000 + b"x",
    "block mappings": b"\n".join(b" " * i + b"a:" for i in range(1_000)),
    "explicit keys": b"? " * 40_000,
    "anchored nesting": b"x: " + b"&a [" * 40_000 + b"]" * 40_000,
    "tagged nesting": b"x: " + b"!!seq [" * 40_000 + b"]" * 40_000,
    "nesting after a document": b"--- x\n--- " + b"[" * 40_000,
    "aliases to aliases": alias_bomb(9),
    "a little more than the limit": alias_bomb(4),
    "merge keys": merge_chain(4_000),
    "a list of merge keys": b"a: &a {k: 1}\nb: {<<: [" + b"*a, " * 2_000 + b"]}",
    "nesting by aliases": deep_by_aliases(400),
    "many aliases": b"a: &a 1\nb: [" + b"*a, " * 2_000 + b"]",
    "long text, repeated": b"a: &a " + b"x" * 100_000 + b"\nb: [" + b"*a, " * 900 + b"]",
    "an alias inside its anchor": b"a: &a [*a]",
    "an alias inside its anchor's mapping": b"&a {<<: *a}",
    "an alias of nothing": b"a: *b",
    "values": b"x: [" + b"1," * 200_000 + b"]",
    "empty mappings": b"x: [" + b"{}," * 200_000 + b"]",
    "documents": b"--- 1\n" * 100_000,
    "tag directives": b"".join(b"%%TAG !a%d! x\n" % i for i in range(10_000)) + b"---\nx: 1",
    "tag directives in UTF-16": (
        "\ufeff" + "".join(f"%TAG !a{i}! x\n" for i in range(10_000)) + "---\nx: 1"
    ).encode("utf-16-le"),
    "tag directives on lines of Unicode": (
        "\x85".join(f"%TAG !a{i}! x" for i in range(10_000)) + "\x85---\nx: 1"
    ).encode(),
    "an unknown tag": b"x: !!python/object/apply:os.system [echo]",
    "a long tag": b"x: !<" + b"a" * 40_000 + b"> 1",
    "text without an end": b'x: "' + b"a\n " * 40_000,
    "a surrogate": b'x: "\\ud800"',
    "a surrogate in bytes": b"x: \xed\xa0\x80",
    "bytes that are no text": b"x: \xff\xfe\xff",
    "a zero byte": b"x: \x00",
    "no number": b"x: .nan",
    "endless": b"x: -.inf",
    "a list as a key": b"? [a]\n: b",
    "nothing as a key": b"~: b",
}
