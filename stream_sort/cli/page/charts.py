"""The charts: arrival and release over time, gaps over time, lag by consumer, and the newest messages of a queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stream_sort.cli.page.drawing import BOTTOM, LETTER, NAME_HEIGHT, Drawing, Ink, Scale, whole_ticks
from stream_sort.insight.report import PARTS
from stream_sort.insight.wording import age, counted, moment, seqs_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from xml.etree.ElementTree import Element

    from stream_sort.insight.history import History, ReportGap, TimedSeq
    from stream_sort.insight.overview import QueueLine
    from stream_sort.insight.report import Findings
    from stream_sort.insight.traffic import TrafficCounts

BAR, SIDE = 13.0, 8.0
# So many queues at most, and so many bars: there may be many consumers.
LAGGING, LAGGING_BARS = 12, 48
# So many queues that had gaps, at most.
GAP_ROWS = 24
PANEL = (340.0, 200.0)
SERIES = (Ink.FIRST, Ink.SECOND, Ink.THIRD, Ink.FOURTH, Ink.FIFTH, Ink.SIXTH)


class Bars(NamedTuple):
    """Counts of messages, one for each part of the time, which rise from the baseline or hang from it."""

    counts: Sequence[int]
    ink: Ink
    word: str
    sign: int


def traffic(findings: Findings, width: float) -> Element | None:
    """Draw the messages that arrived, upwards, and were released, downwards, with the skips; None if there are none."""
    counts = findings.traffic
    if not any(counts.totals):
        return None
    up, down = max(*counts.arrived, 1), max(*counts.released, 1)
    says = "Messages that arrived and were released over time"
    drawing = Drawing(f"traffic-{width:.0f}", says, (width, 270), _gutter(max(up, down)))
    across = drawing.time_axis(findings.begin, findings.now)
    height = Scale(1.1 * up, -1.2 * down, drawing.top, drawing.bottom)
    if not counts.is_complete:
        tip = f"not all is counted before {moment(counts.complete_since)}: see --reads"
        zone = across(counts.begin), across(counts.complete_since)
        drawing.bar(Ink.UNCOUNTED, zone, (drawing.top, drawing.bottom), tip)
    drawing.levels(height, whole_ticks(-down, up, 7), "messages")
    for bars in (Bars(counts.arrived, Ink.ARRIVED, "arrived", 1), Bars(counts.released, Ink.RELEASED, "released", -1)):
        _draw_bars(drawing, counts, bars, (across, height))
    drawing.baseline(height(0))
    for at, count in enumerate(counts.skipped):
        if count:
            # A mark: beside thousands of messages a bar of one would not be seen.
            middle, tip = across(counts.begin + (at + 0.5) * counts.step), f"{counted(count, 'seq')} skipped"
            drawing.diamond(Ink.SKIPPED, middle, height(-1.14 * down), _tip(counts, at, tip))
    return drawing.element


def gap_timeline(findings: Findings, width: float) -> Element | None:
    """Draw when queues waited for missing seqs: a row for each queue that did; None if none did."""
    shown = gap_rows(findings)
    if not shown:
        return None
    row = NAME_HEIGHT + BAR + 9
    says = "When queues waited for missing seqs"
    drawing = Drawing(f"gaps-{width:.0f}", says, (width, row * len(shown) + SIDE + BOTTOM), SIDE, top=SIDE)
    across = drawing.time_axis(findings.begin, findings.now, grid=True)
    for at, queue in enumerate(shown):
        top = drawing.top + at * row
        drawing.row(top, queue)
        # In this order: what still is missing is not hidden by what came.
        for gap in findings.gaps[queue]:
            _draw_gap(drawing, across, gap, findings, top + NAME_HEIGHT)
    return drawing.element


def gap_rows(findings: Findings) -> list[str]:
    """Return the queues whose gaps are drawn: what still is missing first, then skips, each the latest first."""

    def urgency(queue: str) -> tuple[bool, bool, float]:
        gaps = findings.gaps[queue]
        is_open, was_skipped = any(gap.end is None for gap in gaps), any(gap.skipped for gap in gaps)
        return not is_open, not was_skipped, -max(_end(gap, findings) for gap in gaps)

    return sorted(findings.gaps, key=urgency)[:GAP_ROWS]


def lag(findings: Findings, width: float) -> Element | None:
    """Draw how many released seqs each consumer has not done, where that is most; None if all is done."""
    lines, consumers = most_behind(findings), findings.overview.consumers
    if not lines:
        return None
    row = NAME_HEIGHT + BAR * len(consumers) + 9
    says = "How far each consumer is behind"
    drawing = Drawing(f"lag-{width:.0f}", says, (width, row * len(lines) + SIDE + BOTTOM), SIDE, top=SIDE)
    most = max(max(line.lag.values()) for line in lines)
    # The number stands beside the longest bar.
    across = drawing.count_axis(most, drawing.width - SIDE - LETTER * max(len(f"{most:,}"), 4))
    for at, line in enumerate(lines):
        top = drawing.top + at * row
        drawing.row(top, line.queue)
        for number, name in enumerate(consumers):
            if behind := line.lag[name]:
                upper = top + NAME_HEIGHT + number * BAR + 1
                ink, tip = SERIES[number % len(SERIES)], f"{name} in {line.queue}: {counted(behind, 'seq')} behind"
                drawing.bar(ink, (across(0), across(behind)), (upper, upper + BAR - 2), tip)
                drawing.text(across(behind) + 5, upper + BAR - 3, f"{behind:,}", "count")
    return drawing.element


def most_behind(findings: Findings) -> list[QueueLine]:
    """Return the queues of which most is due, as many as there is room for."""
    lines = [line for line in findings.overview.lines if any(line.lag.values())]
    most = min(LAGGING, max(1, LAGGING_BARS // max(1, len(findings.overview.consumers))))
    return sorted(lines, key=lambda line: (-max(line.lag.values()), line.queue))[:most]


def panel(findings: Findings, history: History, number: int) -> Element:
    """Draw the newest messages of a queue: when each arrived, and when it was released or that it waits."""
    low, high = history.slots[0].seq, history.slots[-1].seq
    says = "When messages of the queue arrived, and its position over time"
    drawing = Drawing(f"panel-{number}", says, PANEL, _gutter(high))
    begin = min(slot.at for slot in history.slots)
    across = drawing.time_axis(begin - (findings.now - begin) * 0.03, findings.now)
    # One seq alone stands in the middle.
    spare = int(low == high)
    height = Scale(low - spare, high + spare, drawing.bottom - SIDE, drawing.top)
    drawing.levels(height, whole_ticks(low, high, 5), "seq")
    if moves := {slot.at: slot.seq for slot in history.released}:
        levels = [*moves.items(), (findings.now, history.position)]
        drawing.steps(Ink.RELEASED, [(across(at), height(seq)) for at, seq in levels])

    def draw(ink: Ink, slots: Iterable[TimedSeq]) -> None:
        drawing.dots(ink, [(across(slot.at), height(slot.seq)) for slot in slots])

    skipped = [slot for slot in history.slots if slot.skipped]
    draw(Ink.ARRIVED, [slot for slot in history.slots if slot.seq <= history.position and not slot.skipped])
    draw(Ink.SKIPPED, skipped)
    draw(Ink.WAITING, [slot for slot in history.waiting if not slot.skipped])
    return drawing.element


def _gutter(widest: int) -> float:
    return 20 + LETTER * len(f"{widest:,}")


def _draw_bars(drawing: Drawing, counts: TrafficCounts, bars: Bars, axes: tuple[Scale, Scale]) -> None:
    across, height = axes
    for at, count in enumerate(bars.counts):
        if count:
            edges = (across(counts.begin + (at + part) * counts.step) for part in (0.11, 0.89))
            tip = f"{counted(count, 'message')} {bars.word}"
            drawing.bar(bars.ink, edges, (height(0), height(bars.sign * count)), _tip(counts, at, tip))


def _tip(counts: TrafficCounts, at: int, what: str) -> str:
    begin = counts.begin + at * counts.step
    least = "at least " if begin < counts.complete_since else ""
    return f"{moment(begin)} and {age(counts.step)} on: {least}{what}"


def _draw_gap(drawing: Drawing, across: Scale, gap: ReportGap, findings: Findings, top: float) -> None:
    end = _end(gap, findings)
    ink, word = Ink.FILLED, "came"
    if gap.end is None:
        ink, word = Ink.WAITING, "still missing"
    elif gap.skipped:
        ink, word = Ink.SKIPPED, "skipped"
    begin = max(gap.begin, findings.begin)
    # A gap of a moment is seen, too.
    least = (findings.now - findings.begin) / PARTS
    seqs = f"seq {seqs_text([range(gap.first, gap.last + 1)])}"
    if gap.count < gap.last - gap.first + 1:
        seqs = f"{counted(gap.count, 'seq')} between {gap.first} and {gap.last}"
    tip = f"{seqs}: missing since {moment(gap.begin)}, {word} after {age(end - gap.begin)}"
    drawing.bar(ink, (across(begin), across(max(end, begin + least))), (top, top + BAR), tip)


def _end(gap: ReportGap, findings: Findings) -> float:
    return findings.now if gap.end is None else gap.end
