"""What somebody may have meant who mistyped a command or an option. Loaded only when that happened."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

CLOSE = 0.6


def did_you_mean(problem: str, meant: Iterable[str], help_of: str) -> str:
    """Return what is said of a mistake: the problem, what may have been meant, where to read on."""
    told = _either([*meant])
    problem = problem.rstrip(".")
    return f"{problem}; did you mean {told}? See {help_of} --help" if told else f"{problem}; see {help_of} --help"


def alike(word: str, known: Iterable[str]) -> list[str]:
    """Return the known words that look like this one, the most similar first."""
    return get_close_matches(word, [*known], cutoff=CLOSE)


def options_alike(name: str, known: Iterable[str]) -> list[str]:
    """Return the options that look like this one; the dashes that all of them have make none alike."""
    names = {option.lstrip("-"): option for option in known}
    return [names[close] for close in alike(name.lstrip("-"), names)]


def in_groups(word: str, groups: Mapping[str, Any]) -> list[str]:
    """Return the commands of this name inside groups, such as `parked redrive`."""
    return [f"{name} {word}" for name, group in groups.items() if word in group.commands]


def quoted(commands: Iterable[str]) -> list[str]:
    """Return commands as they stand in a sentence."""
    return [repr(command) for command in commands]


def _either(names: list[str]) -> str:
    return " or ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)
