"""Axes that the charts share: time along the bottom in UTC, and rows with a name above each."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from matplotlib.ticker import FuncFormatter, MaxNLocator

from stream_sort.cli.page.drawing import Ink

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes

    from stream_sort.cli.page.drawing import Drawing

BOTTOM, TOP, RIGHT = 26.0, 6.0, 20.0
MINUTE, HOUR, DAY = 60, 3_600, 86_400
STEPS = (
    *(1, 2, 5, 10, 15, 30),
    *(MINUTE * count for count in (1, 2, 5, 10, 15, 30)),
    *(HOUR * count for count in (1, 2, 3, 6, 12)),
    *(DAY * count for count in (1, 2, 7, 14, 30, 90, 365, 3_650)),
)
LEAST_SPAN = 10.0
NAME_HEIGHT = 18.0
# About the width of a letter, in units: a name gets as many as there is room for.
LETTER = 7.0


def place(drawing: Drawing, left: float) -> Axes:
    """Axes that leave `left` units for what stands beside them."""
    width, height = drawing.width, drawing.height
    area = (left / width, BOTTOM / height, (width - left - RIGHT) / width, (height - BOTTOM - TOP) / height)
    axes = drawing.figure.add_axes(area)
    axes.tick_params(colors=Ink.FAINT, length=0, pad=6, labelsize=11)
    axes.spines["bottom"].set_color(Ink.LINE)
    return axes


def time_along(axes: Axes, begin: float, end: float, ticks: int) -> None:
    """Let time run along the bottom, in seconds since the epoch, told in UTC."""
    begin = min(begin, end - LEAST_SPAN)
    axes.set_xlim(begin, end)
    step = next((one for one in STEPS if (end - begin) / one <= ticks), STEPS[-1])
    first = math.ceil(begin / step) * step
    marks = [float(mark) for mark in range(first, math.floor(end) + 1, step)]
    axes.set_xticks(marks, [_clock(mark, step) for mark in marks])


def _clock(seconds: float, step: int) -> str:
    then = datetime.fromtimestamp(seconds, UTC)
    if step >= DAY or (then.hour, then.minute, then.second) == (0, 0, 0):
        return f"{then:%Y}" if step >= 365 * DAY else f"{then:%-d %b}"
    return f"{then:%H:%M}" if step >= MINUTE else f"{then:%H:%M:%S}"


def count_along(axes: Axes, ticks: int, told: Callable[[int], int] = abs) -> None:
    """Let whole numbers run up the side; `told` makes of what was drawn what is written."""
    axes.yaxis.set_major_locator(whole_numbers(ticks))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{told(round(value)):,}"))
    axes.grid(axis="y", color=Ink.LINE)


def whole_numbers(ticks: int) -> MaxNLocator:
    """Marks at so many whole numbers at most; where there is room for one only, at no halves of it."""
    return MaxNLocator(ticks, integer=True, min_n_ticks=1)


def rows(drawing: Drawing, axes: Axes, names: Sequence[str], height: float) -> None:
    """A row of this height for each name, from the top down; the name stands above what is drawn into the row."""
    axes.set_ylim(len(names) * height, 0)
    axes.set_yticks([])
    room = int((drawing.width - RIGHT) / LETTER)
    for at, name in enumerate(names):
        axes.text(
            0,
            at * height + NAME_HEIGHT - 5,
            drawing.label(shortened(name, room)),
            transform=axes.get_yaxis_transform(),
            color=Ink.TEXT,
            va="baseline",
            parse_math=False,
        )


def shortened(name: str, length: int) -> str:
    """The beginning and the end of a name that is too long."""
    if len(name) <= length:
        return name
    tail = length // 3
    return f"{name[: length - tail - 1]}…{name[-tail:]}"
