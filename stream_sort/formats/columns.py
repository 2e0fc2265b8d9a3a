"""Fit the columns of a text table into a width: names and texts are cut with an ellipsis, figures never."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# What a table is fitted to where there is no terminal.
PIPE_WIDTH = 120
# A text is cut to no less, unless a table has nothing else left.
LEAST_TEXT = 10
LEAST_TITLE = 6
ELLIPSIS = "…"
# Numbers, ages such as 3.5 h, times, and ids that other commands take; cut, they would say something else, or nothing.
FIGURE = re.compile(
    r"-|-?\d[\d,.]*(?: ?(?:s|min|h|d|[KMG]?B|%))?\??|\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d)?Z?"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
)
DIGITS = re.compile(r"[\d.,:-]*\d$")


@dataclass(frozen=True, slots=True)
class Column:
    """The texts of a column; a `name` is cut in its middle, because names differ at their ends."""

    title: str
    cells: Sequence[str]
    is_name: bool = False

    @property
    def is_figures(self) -> bool:
        """Return True if it holds nothing but figures."""
        told = [cell.strip() for cell in self.cells if cell.strip()]
        return bool(told) and all(map(FIGURE.fullmatch, told))

    @property
    def natural(self) -> int:
        """Return the width at which nothing is cut."""
        return max(map(text_width, [self.title, *self.cells]))

    @property
    def least(self) -> int:
        """Return the width below which the column is of no use."""
        if not self.is_figures:
            return min(self.natural, LEAST_TEXT)
        return max(min(text_width(self.title), LEAST_TITLE), *map(text_width, self.cells))

    def cut(self, width: int) -> Column:
        """Return the same column, no wider than that."""
        shorten = cut_middle if self.is_name else cut_end
        return Column(cut_end(self.title, width), [shorten(cell, width) for cell in self.cells], self.is_name)


def fit(columns: Sequence[Column], width: int, between: int) -> list[int]:
    """Return the width of each column, 0 for one that is left out, so that all of it is no wider than `width`.

    The widest are cut first. Where that does not suffice columns are left out, never the first: the widest figures,
    such as times, before others, and texts last. `between` is the space between two columns.
    """
    kept = list(range(len(columns)))
    while len(kept) > 1 and sum(columns[at].least for at in kept) + between * (len(kept) - 1) > width:
        later = kept[1:]
        figures = [at for at in later if columns[at].is_figures]
        kept.remove(max(figures, key=lambda at: (columns[at].least, at)) if figures else later[-1])
    budget = max(1, width - between * (len(kept) - 1))
    widths = _shared({at: columns[at] for at in kept}, budget)
    return [widths.get(at, 0) for at in range(len(columns))]


def _shared(columns: dict[int, Column], budget: int) -> dict[int, int]:
    """Share a width: each column has what it needs, but no more than a bound that is the same for all."""
    natural = {at: column.natural for at, column in columns.items()}
    if sum(natural.values()) <= budget:
        return natural
    least = {at: column.least for at, column in columns.items()}
    if len(columns) == 1:
        return dict.fromkeys(columns, budget)
    bound = max(natural.values())
    while bound > 1 and sum(max(least[at], min(natural[at], bound)) for at in columns) > budget:
        bound -= 1
    widths = {at: max(least[at], min(natural[at], bound)) for at in columns}
    spare = budget - sum(widths.values())
    for at in columns:
        more = min(1, spare, natural[at] - widths[at])
        widths[at] += more
        spare -= more
    return widths


def text_width(text: str) -> int:
    """Return how many places of a terminal a text takes."""
    return len(text) if text.isascii() else sum(map(_places, text))


def cut_end(text: str, width: int) -> str:
    """Cut a text at its end; a number that does not fit is left out as a whole."""
    if text_width(text) <= width:
        return text
    head = _head(text, width - 1)
    if text[len(head)].isdigit():
        head = DIGITS.sub("", head)
    return head.rstrip() + ELLIPSIS


def cut_middle(text: str, width: int) -> str:
    """Cut a text in its middle."""
    if text_width(text) <= width:
        return text
    tail = _head(text[::-1], (width - 1) // 2)[::-1]
    return _head(text, width - 1 - text_width(tail)) + ELLIPSIS + tail


def _head(text: str, width: int) -> str:
    taken = 0
    for at, letter in enumerate(text):
        taken += _places(letter)
        if taken > width:
            return text[:at]
    return text


def _places(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
