"""The charts of all queues: arrival and release over time, gaps over time, lag by consumer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.ticker import FuncFormatter

from stream_sort.cli.choice import counted, moment
from stream_sort.cli.page.axes import NAME_HEIGHT, count_along, place, rows, time_along, whole_numbers
from stream_sort.cli.page.drawing import Drawing, Ink
from stream_sort.cli.page.history import merged
from stream_sort.cli.reasons import age
from stream_sort.cli.seqs import seqs_text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from xml.etree.ElementTree import Element

    from matplotlib.axes import Axes

    from stream_sort.cli.overview import QueueLine
    from stream_sort.cli.page.gather import Findings
    from stream_sort.cli.page.history import Gap

BINS = 48
BAR = 13.0
AROUND = 32.0
UNITS_A_TICK = 110
# So many queues at most, and so many bars: there may be many consumers.
LAGGING, LAGGING_BARS = 12, 48
# What is shorter than this part of the time shown would not be seen.
PARTS = 300
SERIES = (Ink.FIRST, Ink.SECOND, Ink.THIRD, Ink.FOURTH, Ink.FIFTH, Ink.SIXTH)


def traffic(findings: Findings, width: float) -> Element | None:
    """How many messages arrived, upwards, and were released, downwards, in each stretch of time; None without any."""
    histories = findings.histories
    arrived = _counts(findings, (slot.at for one in histories for slot in one.slots if not slot.skipped))
    released = _counts(findings, (slot.at for one in histories for slot in one.released if not slot.skipped))
    if not any(arrived):
        return None
    drawing = Drawing(f"traffic-{width:.0f}", width, 260)
    axes = place(drawing, left=44)
    time_along(axes, findings.begin, findings.now, int(width / UNITS_A_TICK))
    _draw_counts(drawing, axes, findings, (arrived, Ink.ARRIVED, "arrived"))
    _draw_counts(drawing, axes, findings, ([-count for count in released], Ink.RELEASED, "released"))
    axes.axhline(0, color=Ink.FAINT, linewidth=1)
    axes.set_ylim(-1.1 * max(*released, 1), 1.1 * max(*arrived, 1))
    count_along(axes, 6)
    return drawing.element("Messages that arrived and were released over time")


def gap_timeline(findings: Findings, width: float) -> Element | None:
    """When queues waited for missing seqs: a row for each queue that did; None if none did."""
    found = [(one, [gap for gap in one.gaps if _end(gap, findings) >= findings.begin]) for one in findings.histories]
    shown = [(history, gaps) for history, gaps in found if gaps]
    shown.sort(key=lambda row: all(gap.end is not None for gap in row[1]))
    if not shown:
        return None
    row = NAME_HEIGHT + BAR + 9
    drawing = Drawing(f"gaps-{width:.0f}", width, row * len(shown) + AROUND)
    axes = place(drawing, left=8)
    time_along(axes, findings.begin, findings.now, int(width / UNITS_A_TICK))
    axes.grid(axis="x", color=Ink.LINE)
    rows(drawing, axes, [history.queue for history, _ in shown], row)
    for at, (_, gaps) in enumerate(shown):
        # In this order: what still is missing is not hidden by what came.
        for gap in merged(gaps, (findings.now - findings.begin) / PARTS):
            _draw_gap(drawing, axes, gap, findings, at * row + NAME_HEIGHT)
    return drawing.element("When queues waited for missing seqs")


def lag(findings: Findings, width: float) -> Element | None:
    """How many released seqs each consumer has not done, where that is most; None if all is done."""
    lines, consumers = most_behind(findings), findings.overview.consumers
    if not lines:
        return None
    row = NAME_HEIGHT + BAR * len(consumers) + 9
    drawing = Drawing(f"lag-{width:.0f}", width, row * len(lines) + AROUND)
    axes = place(drawing, left=8)
    # Room for the number beside the longest bar.
    axes.set_xlim(0, max(max(line.lag.values()) for line in lines) * (1 + 90 / width))
    axes.xaxis.set_major_locator(whole_numbers(max(2, int(width / UNITS_A_TICK))))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.grid(axis="x", color=Ink.LINE)
    rows(drawing, axes, [line.queue for line in lines], row)
    for at, line in enumerate(lines):
        for number, name in enumerate(consumers):
            top = at * row + NAME_HEIGHT + number * BAR
            _draw_lag(drawing, axes, (line.lag[name], top, SERIES[number % len(SERIES)]), f"{name} in {line.queue}")
    return drawing.element("How far each consumer is behind")


def most_behind(findings: Findings) -> list[QueueLine]:
    """The queues of which most is due, as many as there is room for."""
    lines = [line for line in findings.overview.lines if any(line.lag.values())]
    most = min(LAGGING, max(1, LAGGING_BARS // max(1, len(findings.overview.consumers))))
    return sorted(lines, key=lambda line: (-max(line.lag.values()), line.queue))[:most]


def _counts(findings: Findings, times: Iterable[float]) -> list[int]:
    counts = [0] * BINS
    span = findings.now - findings.begin
    for at in times:
        if at >= findings.begin:
            counts[min(BINS - 1, int((at - findings.begin) / span * BINS))] += 1
    return counts


def _draw_counts(drawing: Drawing, axes: Axes, findings: Findings, series: tuple[list[int], Ink, str]) -> None:
    counts, ink, word = series
    step = (findings.now - findings.begin) / BINS
    for at, count in enumerate(counts):
        if count:
            begin = findings.begin + at * step
            (bar,) = axes.bar(begin + step / 2, count, width=0.78 * step, color=ink)
            bar.set_gid(drawing.tip(f"{moment(begin)} and {age(step)} on: {counted(abs(count), 'message')} {word}"))


def _draw_gap(drawing: Drawing, axes: Axes, gap: Gap, findings: Findings, top: float) -> None:
    end = _end(gap, findings)
    ink, word = Ink.FILLED, "came"
    if gap.end is None:
        ink, word = Ink.WAITING, "still missing"
    elif gap.skipped:
        ink, word = Ink.SKIPPED, "skipped"
    left = max(gap.begin, findings.begin)
    # A gap of a moment is seen, too.
    least = (findings.now - findings.begin) / PARTS
    (bar,) = axes.barh(top + BAR / 2, max(end - left, least), left=left, height=BAR, color=ink)
    seqs = f"seq {seqs_text([range(gap.first, gap.last + 1)])}"
    if gap.count < gap.last - gap.first + 1:
        seqs = f"{counted(gap.count, 'seq')} between {gap.first} and {gap.last}"
    bar.set_gid(drawing.tip(f"{seqs}: missing since {moment(gap.begin)}, {word} after {age(end - gap.begin)}"))


def _draw_lag(drawing: Drawing, axes: Axes, bar: tuple[int, float, Ink], told: str) -> None:
    behind, top, ink = bar
    (drawn,) = axes.barh(top + BAR / 2, behind, height=BAR - 2, color=ink)
    drawn.set_gid(drawing.tip(f"{told}: {counted(behind, 'seq')} behind"))
    if behind:
        where, beside = (behind, top + BAR / 2), (5, 0)
        number = axes.annotate(f"{behind:,}", where, beside, textcoords="offset points", va="center")
        number.set(fontsize=11, color=Ink.TEXT)


def _end(gap: Gap, findings: Findings) -> float:
    return findings.now if gap.end is None else gap.end
