"""One chart as an SVG element: its axes, bars, lines and texts. The page's style gives them their colours.

SVG needs no script, so that the page can forbid them all. Every text goes in as text, through `tag`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum, auto
from itertools import count
from typing import TYPE_CHECKING

from stream_sort.cli.page.elements import tag

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MINUTE, HOUR, DAY = 60, 3_600, 86_400
STEPS = (
    *(1, 2, 5, 10, 15, 30),
    *(MINUTE * count for count in (1, 2, 5, 10, 15, 30)),
    *(HOUR * count for count in (1, 2, 3, 6, 12)),
    *(DAY * count for count in (1, 2, 7, 14, 30, 90, 365, 3_650)),
)
# In units of a drawing: what stands below, above and right of the plot; a letter; a row's name.
BOTTOM, TOP, RIGHT = 26.0, 22.0, 32.0
LETTER = 7.0
NAME_HEIGHT = 18.0
TIME_TICK = 90.0
# Seconds.
LEAST_SPAN = 10.0


class Ink(StrEnum):
    """Colours by what they mean; the style has a class and a variable of each name."""

    ARRIVED = auto()
    RELEASED = auto()
    WAITING = auto()
    SKIPPED = auto()
    FILLED = auto()
    UNCOUNTED = auto()
    FIRST = auto()
    SECOND = auto()
    THIRD = auto()
    FOURTH = auto()
    FIFTH = auto()
    SIXTH = auto()


@dataclass(frozen=True, slots=True)
class Scale:
    """Where values from `low` to `high` stand, between `begin` and `end`; whole numbers of any size keep apart."""

    low: float
    high: float
    begin: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the place of a value, in units."""
        return self.begin + (value - self.low) / (self.high - self.low or 1) * (self.end - self.begin)


class Drawing:
    """An SVG image under way; `says` is for readers who cannot see it, `left` how far from its edge the plot begins."""

    def __init__(self, name: str, says: str, size: tuple[float, float], left: float, top: float = TOP) -> None:
        self.width, height = size
        self.left, self.right = left, self.width - RIGHT
        self.top, self.bottom = top, height - BOTTOM
        view = f"0 0 {_short(self.width)} {_short(height)}"
        self.element = tag("svg", viewBox=view, class_=f"drawing {name}", role="img", aria_label=says)

    def bar(self, ink: Ink, across: Iterable[float], down: Iterable[float], tip: str) -> None:
        """Fill a rectangle; `tip` is shown when it is pointed at."""
        (left, right), (top, bottom) = sorted(across), sorted(down)
        box = {"x": left, "y": top, "width": right - left, "height": bottom - top}
        places = {name: _short(value) for name, value in box.items()}
        self.element.append(tag("rect", tag("title", tip), class_=f"bar {ink}", **places))

    def diamond(self, ink: Ink, x: float, y: float, tip: str) -> None:
        """Mark a place, however little there is to be seen of it."""
        shape = f"M{_short(x)} {_short(y - 5)}l5 5-5 5-5-5z"
        self.element.append(tag("path", tag("title", tip), class_=f"bar {ink}", d=shape))

    def steps(self, ink: Ink, points: Sequence[tuple[float, float]]) -> None:
        """Draw a line that keeps its level until the next point."""
        (x, y), *rest = points
        moves = (f"H{_short(x)}V{_short(y)}" for x, y in rest)
        self._path(f"line {ink}", f"M{_short(x)} {_short(y)}{''.join(moves)}")

    def dots(self, ink: Ink, points: Iterable[tuple[float, float]]) -> None:
        """Draw a dot at each point, all in one path: there may be thousands."""
        if shape := "".join(f"M{_short(x)} {_short(y)}h0" for x, y in points):
            self._path(f"dots {ink}", shape)

    def time_axis(self, begin: float, end: float, *, grid: bool = False) -> Scale:
        """Let time run along the bottom, in seconds since the epoch, shown in UTC."""
        begin = min(begin, end - LEAST_SPAN)
        ticks = time_ticks(begin, end, max(3, int((self.right - self.left) / TIME_TICK)))
        return self._along(Scale(begin, end, self.left, self.right), ticks, "UTC", grid=grid)

    def count_axis(self, most: int, end: float) -> Scale:
        """Let whole numbers from 0 on run along the bottom; `most` stands at `end`."""
        room = max(2, int((end - self.left) / (LETTER * len(f"{most:,}") + 24)))
        scale = Scale(0, most, self.left, end)
        return self._along(scale, [(tick, f"{tick:,}") for tick in whole_ticks(0, most, room)], "seqs", grid=True)

    def levels(self, scale: Scale, ticks: Iterable[int], name: str) -> None:
        """Draw a line across at each tick, with its number, and above them what they count."""
        levels = {tick: scale(tick) for tick in ticks}
        self._path("grid", "".join(f"M{_short(self.left)} {_short(y)}H{_short(self.right)}" for y in levels.values()))
        for tick, y in levels.items():
            self.text(self.left - 8, y + 4, f"{abs(tick):,}", "end")
        self.text(max(self.left - 8, LETTER * len(name)), self.top - 10, name, "end")

    def baseline(self, y: float) -> None:
        """Draw the line from which bars rise and fall."""
        self._path("axis", f"M{_short(self.left)} {_short(y)}H{_short(self.right)}")

    def text(self, x: float, y: float, text: str, kind: str = "") -> None:
        """Write a text; `kind` is a class of the style: where it stands to x, and how it looks."""
        self.element.append(tag("text", text, x=_short(x), y=_short(y), class_=kind or None))

    def row(self, top: float, name: str) -> None:
        """Write the name of a row above what is drawn into it, shortened if there is no room for it."""
        self.text(self.left, top + NAME_HEIGHT - 5, shortened(name, int((self.width - self.left) / LETTER)), "row")

    def _along(self, scale: Scale, ticks: Iterable[tuple[float, str]], name: str, *, grid: bool) -> Scale:
        places = [(scale(value), text) for value, text in ticks]
        if grid:
            lines = "".join(f"M{_short(x)} {_short(self.top)}V{_short(self.bottom)}" for x, _ in places)
            self._path("grid", lines)
        free = 0.0
        for x, text in places:
            half = LETTER / 2 * len(text)
            # Neither into the label before it nor into the name of the axis.
            if free <= x - half and x + half < self.right + 6:
                self.text(x, self.bottom + 18, text, "middle")
                free = x + half
        self.text(self.width, self.bottom + 18, name, "end")
        self._path("grid", f"M{_short(self.left)} {_short(self.bottom)}H{_short(self.right)}")
        return scale

    def _path(self, kind: str, shape: str) -> None:
        self.element.append(tag("path", class_=kind, d=shape))


def whole_ticks(low: int, high: int, most: int) -> list[int]:
    """Return round whole numbers from `low` to `high`, so many at most."""
    steps = (digit * 10**power for power in count() for digit in (1, 2, 5))
    step = next(step for step in steps if high // step + -low // step < most)
    return list(range(-(-low // step) * step, high + 1, step))


def time_ticks(begin: float, end: float, most: int) -> list[tuple[float, str]]:
    """Return round times from `begin` to `end`, about so many at most, and how to write them."""
    step = next((one for one in STEPS if (end - begin) / one <= most), STEPS[-1])
    return [(mark, _clock(mark, step)) for mark in range(math.ceil(begin / step) * step, math.floor(end) + 1, step)]


def shortened(name: str, length: int) -> str:
    """Return the beginning and the end of a name that is too long."""
    if len(name) <= length:
        return name
    tail = length // 3
    return f"{name[: length - tail - 1]}…{name[-tail:]}"


def _clock(seconds: float, step: int) -> str:
    then = datetime.fromtimestamp(seconds, UTC)
    if step >= DAY or (then.hour, then.minute, then.second) == (0, 0, 0):
        return f"{then:%b %Y}" if step >= 90 * DAY else f"{then:%-d %b}"
    return f"{then:%H:%M}" if step >= MINUTE else f"{then:%H:%M:%S}"


def _short(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
