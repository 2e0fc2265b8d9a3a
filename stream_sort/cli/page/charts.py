"""The charts of all queues: arrival and release over time, gaps over time, lag by consumer."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from matplotlib.ticker import FuncFormatter

from stream_sort.cli.page.axes import NAME_HEIGHT, count_along, place, rows, time_along, whole_numbers
from stream_sort.cli.page.drawing import Drawing, Ink
from stream_sort.insight.report import PARTS
from stream_sort.insight.wording import age, counted, moment, seqs_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from xml.etree.ElementTree import Element

    from matplotlib.axes import Axes

    from stream_sort.insight.history import ReportGap
    from stream_sort.insight.overview import QueueLine
    from stream_sort.insight.report import Findings
    from stream_sort.insight.traffic import TrafficCounts

BAR = 13.0
AROUND = 32.0
UNITS_A_TICK = 110
# So many queues at most, and so many bars: there may be many consumers.
LAGGING, LAGGING_BARS = 12, 48
# So many queues that had gaps, at most.
GAP_ROWS = 24
SERIES = (Ink.FIRST, Ink.SECOND, Ink.THIRD, Ink.FOURTH, Ink.FIFTH, Ink.SIXTH)


def traffic(findings: Findings, width: float) -> Element | None:
    """Messages that arrived, upwards, and were released, downwards, with the skips; None if there are none."""
    counts = findings.traffic
    if not any(counts.totals):
        return None
    drawing = Drawing(f"traffic-{width:.0f}", width, 260)
    axes = place(drawing, left=44)
    time_along(axes, findings.begin, findings.now, int(width / UNITS_A_TICK))
    if not counts.is_complete:
        zone = axes.axvspan(counts.begin, counts.complete_since, color=Ink.LINE, alpha=0.6, linewidth=0)
        zone.set_gid(drawing.tip(f"not all is counted before {moment(counts.complete_since)}: see --reads"))
    _draw_counts(drawing, axes, counts, Series(counts.arrived, Ink.ARRIVED, "arrived"))
    _draw_counts(drawing, axes, counts, Series([-count for count in counts.released], Ink.RELEASED, "released"))
    axes.axhline(0, color=Ink.FAINT, linewidth=1)
    bottom = -1.2 * max(*counts.released, 1)
    axes.set_ylim(bottom, 1.1 * max(*counts.arrived, 1))
    _draw_skips(drawing, axes, counts, 0.95 * bottom)
    count_along(axes, 6)
    return drawing.element("Messages that arrived and were released over time")


def gap_timeline(findings: Findings, width: float) -> Element | None:
    """When queues waited for missing seqs: a row for each queue that did; None if none did."""
    shown = gap_rows(findings)
    if not shown:
        return None
    row = NAME_HEIGHT + BAR + 9
    drawing = Drawing(f"gaps-{width:.0f}", width, row * len(shown) + AROUND)
    axes = place(drawing, left=8)
    time_along(axes, findings.begin, findings.now, int(width / UNITS_A_TICK))
    axes.grid(axis="x", color=Ink.LINE)
    rows(drawing, axes, shown, row)
    for at, queue in enumerate(shown):
        # In this order: what still is missing is not hidden by what came.
        for gap in findings.gaps[queue]:
            _draw_gap(drawing, axes, gap, findings, at * row + NAME_HEIGHT)
    return drawing.element("When queues waited for missing seqs")


def gap_rows(findings: Findings) -> list[str]:
    """The queues with gaps that there is room for: what still is missing first, then skips, each the latest first."""

    def urgency(queue: str) -> tuple[bool, bool, float]:
        gaps = findings.gaps[queue]
        is_open, was_skipped = any(gap.end is None for gap in gaps), any(gap.skipped for gap in gaps)
        return not is_open, not was_skipped, -max(_end(gap, findings) for gap in gaps)

    return sorted(findings.gaps, key=urgency)[:GAP_ROWS]


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


class Series(NamedTuple):
    """What is drawn as bars: a count of messages for each part of the time, and what became of them."""

    counts: Sequence[int]
    ink: Ink
    word: str


def _draw_counts(drawing: Drawing, axes: Axes, traffic: TrafficCounts, series: Series) -> None:
    for at, count in enumerate(series.counts):
        if count:
            middle, width = traffic.begin + (at + 0.5) * traffic.step, 0.78 * traffic.step
            (bar,) = axes.bar(middle, count, width=width, color=series.ink)
            bar.set_gid(drawing.tip(_told(traffic, at, f"{counted(abs(count), 'message')} {series.word}")))


def _draw_skips(drawing: Drawing, axes: Axes, traffic: TrafficCounts, height: float) -> None:
    """Mark where seqs were skipped: beside thousands of messages a bar of one would not be seen."""
    for at, count in enumerate(traffic.skipped):
        if count:
            middle = traffic.begin + (at + 0.5) * traffic.step
            (mark,) = axes.plot([middle], [height], marker="D", markersize=6, markeredgewidth=0, color=Ink.SKIPPED)
            mark.set_gid(drawing.tip(_told(traffic, at, f"{counted(count, 'seq')} skipped")))


def _told(traffic: TrafficCounts, at: int, what: str) -> str:
    begin = traffic.begin + at * traffic.step
    least = "at least " if begin < traffic.complete_since else ""
    return f"{moment(begin)} and {age(traffic.step)} on: {least}{what}"


def _draw_gap(drawing: Drawing, axes: Axes, gap: ReportGap, findings: Findings, top: float) -> None:
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


def _end(gap: ReportGap, findings: Findings) -> float:
    return findings.now if gap.end is None else gap.end
