"""A Containerfile as data: its stages and instructions, variables put in as an engine does.

Only the instructions that ours may use are known. Anything else is an error, so that a new one
cannot be left out of the tests without anybody noticing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_VARIABLE = re.compile(r"\$\{(\w+)\}|\$(\w+)")
_FLAG = re.compile(r"--(\w+)=(\S+)$")
_WITH_FLAGS = ("COPY",)
# An engine leaves these to the shell; the variables are in its environment.
_FOR_THE_SHELL = ("RUN",)
_KNOWN = (
    "ARG", "FROM", "ENV", "LABEL", "WORKDIR", "COPY", "RUN", "USER", "ENTRYPOINT", "CMD",
)  # fmt: skip


class ContainerfileError(Exception):
    """A Containerfile that an engine would refuse, or that these tests do not understand."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction as written: its name, its flags, and the rest of the line."""

    name: str
    text: str
    flags: Mapping[str, str] = field(default_factory=dict)

    @property
    def words(self) -> list[str]:
        """The words of the exec form, or of a line."""
        if self.text.startswith("["):
            words = json.loads(self.text)
            if not isinstance(words, list):
                raise ContainerfileError(f"{self.name} {self.text}: want a list")
            return [str(word) for word in words]
        return self.text.split()

    @property
    def pairs(self) -> dict[str, str]:
        """The pairs of ENV and LABEL; values may be quoted."""
        found = re.findall(r'([\w.]+)=("[^"]*"|\S+)', self.text)
        return {key: value.strip('"') for key, value in found}


@dataclass(frozen=True, slots=True)
class Stage:
    """What begins with a FROM."""

    base: str
    name: str
    instructions: tuple[Instruction, ...]


def parse(text: str, given: Mapping[str, str] | None = None) -> list[Stage]:
    """Return the stages, with the build arguments *given* or their defaults put in."""
    outside: dict[str, str] = {}  # of ARGs before the first FROM, which only FROMs see
    inside: dict[str, str] = {}
    stages: list[Stage] = []
    for written in _instructions(text):
        if written.name == "FROM":
            base, name = _from(_filled(written, outside))
            stages.append(Stage(base, name, ()))
            inside = {}
            continue
        if written.name == "ARG":
            name, _, default = written.text.partition("=")
            value = (given or {}).get(name, default)
            (inside if stages else outside)[name] = value
            if not stages:
                continue
            found = Instruction("ARG", f"{name}={value}")
        elif not stages:
            raise ContainerfileError(f"{written.name} before the first FROM")
        else:
            found = _filled(written, inside)
        if found.name == "ENV":
            inside.update(found.pairs)
        last = stages[-1]
        stages[-1] = Stage(last.base, last.name, (*last.instructions, found))
    return stages


def _filled(written: Instruction, variables: Mapping[str, str]) -> Instruction:
    if written.name in _FOR_THE_SHELL:
        return written
    flags = {key: _substituted(value, variables) for key, value in written.flags.items()}
    return Instruction(written.name, _substituted(written.text, variables), flags)


def _instructions(text: str) -> Iterator[Instruction]:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    whole = re.sub(r"\\\n", " ", "\n".join(lines))
    for line in filter(str.strip, whole.splitlines()):
        name, _, rest = line.strip().partition(" ")
        if name not in _KNOWN:
            raise ContainerfileError(f"{name}: not an instruction these tests know")
        flags: dict[str, str] = {}
        words = rest.split()
        while name in _WITH_FLAGS and words and (flag := _FLAG.match(words[0])):
            flags[flag[1]] = flag[2]
            rest = rest.replace(words.pop(0), "", 1)
        yield Instruction(name, " ".join(rest.split()) if name != "RUN" else rest.strip(), flags)


def _from(instruction: Instruction) -> tuple[str, str]:
    words = instruction.words
    if len(words) == 3 and words[1].upper() == "AS":
        return words[0], words[2]
    if len(words) == 1:
        return words[0], ""
    raise ContainerfileError(f"FROM {instruction.text}: want IMAGE or IMAGE AS NAME")


def _substituted(text: str, variables: Mapping[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        if name not in variables:
            raise ContainerfileError(f"${name} is not set here")
        return variables[name]

    return _VARIABLE.sub(value, text)
