"""What somebody may have meant who mistyped a command or an option. Loaded only when that happened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stream_sort.model.alike import alike, either

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def did_you_mean(problem: str, meant: Iterable[str], help_of: str) -> str:
    """Return what is said of a mistake: the problem, what may have been meant, where to read on."""
    told = either([*meant])
    problem = problem.rstrip(".")
    return f"{problem}; did you mean {told}? See {help_of} --help" if told else f"{problem}; see {help_of} --help"


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
