"""One small chart a queue: each message at the time it arrived, and the position as it went up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_sort.cli.page.axes import count_along, place, time_along
from stream_sort.cli.page.drawing import Drawing, Ink

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from matplotlib.axes import Axes

    from stream_sort.insight.history import History, TimedSeq
    from stream_sort.insight.report import Findings

WIDTH, HEIGHT = 340.0, 190.0
PANELS = 6
# So many digits of a seq fit beside the axis.
DIGIT = 7.0


def panel(findings: Findings, history: History, number: int) -> Element:
    """The newest messages of a queue: when each arrived, and when it was released or that it waits."""
    drawing = Drawing(f"panel-{number}", WIDTH, HEIGHT)
    # Floats do not hold large seqs: they are drawn by their distance from the first.
    base = history.slots[0].seq
    widest = len(f"{history.slots[-1].seq:,}")
    axes = place(drawing, left=16 + DIGIT * widest)
    begin = min(slot.at for slot in history.slots)
    time_along(axes, begin - (findings.now - begin) * 0.03, findings.now, 4)
    count_along(axes, 4, lambda seq: base + seq)
    _draw_position(axes, history, base, findings.now)
    released = {slot.seq for slot in history.released}
    arrived = [slot for slot in history.slots if slot.seq in released and not slot.skipped]
    _draw_dots(axes, arrived, Ink.ARRIVED, base)
    _draw_dots(axes, [slot for slot in history.slots if slot.skipped], Ink.SKIPPED, base)
    _draw_dots(axes, [slot for slot in history.waiting if not slot.skipped], Ink.WAITING, base)
    return drawing.element("When messages of the queue arrived, and its position over time")


def _draw_position(axes: Axes, history: History, base: int, now: float) -> None:
    moves = {slot.at: slot.seq - base for slot in history.released}
    if not moves:
        return
    times = [*moves, now]
    levels = [*moves.values(), history.position - base]
    axes.plot(times, levels, drawstyle="steps-post", color=Ink.RELEASED, linewidth=2, solid_joinstyle="round")


def _draw_dots(axes: Axes, slots: list[TimedSeq], ink: Ink, base: int) -> None:
    if slots:
        times, heights = [slot.at for slot in slots], [slot.seq - base for slot in slots]
        axes.plot(times, heights, linestyle="none", marker="o", markersize=4, markeredgewidth=0, color=ink)
