"""Words that somebody may have meant who mistyped one. Loaded only when that happened."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

CLOSE = 0.6


def alike(word: str, known: Iterable[str], *, close: float = CLOSE) -> list[str]:
    """Return the known words that look like this one, the most similar first; 1 is the very same."""
    return get_close_matches(word, [*known], cutoff=close)


def either(names: Sequence[str]) -> str:
    """Return names as they stand in a question: a, b or c."""
    return " or ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def question(word: str, known: Iterable[str]) -> str:
    """Return what is asked behind a name that is not there, such as `; did you mean 'bob'?`; empty if none is alike."""
    found = alike(word, known)
    return f"; did you mean {either([repr(one) for one in found])}?" if found else ""
