"""The page, from its headline to its small print. `gather` says what it shows, page.css what it looks like."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from stream_sort import __version__
from stream_sort.cli.page.charts import SERIES, gap_rows, gap_timeline, lag, most_behind, panel, traffic
from stream_sort.cli.page.drawing import Ink
from stream_sort.cli.page.elements import document, tag
from stream_sort.cli.page.tables import left_out, name_of, queue_table, trouble_table
from stream_sort.insight.wording import age, counted, moment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from xml.etree.ElementTree import Element

    from stream_sort.cli.page.elements import Content
    from stream_sort.insight.report import Findings
    from stream_sort.insight.wording import CommandText

WIDE, NARROW = 880.0, 340.0
PANELS = 6


def page_of(findings: Findings, where: str, command: CommandText) -> str:
    """Return the whole page, as text; `where` names the tables, `command` what to type about a queue in trouble."""
    parts = [_head(findings, where), *_sections(findings, command), _foot(findings)]
    style = files("stream_sort.cli.page").joinpath("page.css").read_text("utf-8")
    return document(f"{findings.verdict.headline} · stream_sort", style, tag("body", tag("main", *parts)))


def period_text(findings: Findings) -> str:
    """Name the period."""
    return f"last {span_text(findings.now - findings.begin)}"


def span_text(seconds: float) -> str:
    """Name a length of time."""
    return age(seconds).replace(".0 ", " ")


def traffic_text(findings: Findings) -> str:
    """Say how many messages came and went in the period, in whole sentences."""
    traffic = findings.traffic
    arrived, released, skipped = traffic.totals
    least = "" if traffic.is_complete else "at least "
    told = [f"{counted(arrived, 'message')} arrived", f"{released:,} {_was(released)} released"]
    told += [f"{counted(skipped, 'seq')} {_was(skipped)} skipped"] if skipped else []
    where = f"In the {period_text(findings)}, in {_all(findings.verdict.queues)}"
    sentences = [f"{where}: {least}{', '.join(told[:-1])} and {told[-1]}."]
    if traffic.is_complete and not any(traffic.totals):
        sentences = [f"No message arrived and no seq was skipped in the {period_text(findings)}."]
    if traffic.cut_short:
        since = f"All is counted since {moment(traffic.complete_since)} only"
        if traffic.complete_since >= traffic.end:
            since = "Not all is counted"
        spent = f"{counted(findings.bounds.reads, 'read')} {_was(findings.bounds.reads)} not enough"
        of_all = f"{traffic.cut_short:,} of {counted(traffic.active, 'active queue')}"
        sentences.append(f"{since}: {spent} for {of_all}. Give more with --reads, or a shorter --period.")
    if traffic.trimmed:
        sentences.append(f"What was trimmed in {counted(traffic.trimmed, 'queue')} meanwhile is not counted.")
    return " ".join(sentences)


def _head(findings: Findings, where: str) -> Element:
    verdict = findings.verdict
    mood = "is-bad" if verdict.in_trouble else "is-good" if verdict.queues else "is-empty"
    tiles = [
        _tile("Queues", verdict.queues, ""),
        _tile("Parked", verdict.parked, "is-parked"),
        *([_tile("With dead letters", verdict.dead, "is-dead")] if verdict.dead else []),
        _tile("Waiting for a seq", verdict.waiting, "is-waiting"),
        _tile("Not all consumed", verdict.behind, "is-behind"),
        _tile("Seqs due", verdict.due, "is-behind"),
    ]
    return tag(
        "header",
        tag("p", tag("b", "stream_sort"), " report · ", where, class_="where"),
        tag("h1", verdict.headline, class_=mood),
        tag("p", f"As of {moment(findings.now)}", class_="when"),
        *(tag("p", f"Consumer {name} has not begun: {due}") for name, due in findings.overview.not_begun.items()),
        tag("dl", *tiles, class_="tiles"),
    )


def _tile(name: str, value: int, mood: str) -> Element:
    return tag("div", tag("dt", name), tag("dd", f"{value:,}"), class_=f"tile {mood if value else ''}".strip())


def _sections(findings: Findings, command: CommandText) -> Iterator[Element]:
    trouble = trouble_table(findings, command)
    if trouble is not None:
        yield _section("In trouble", None, trouble, left_out(findings.verdict.in_trouble, findings))
    yield _traffic(findings)
    yield _gaps(findings)
    yield _lag(findings)
    if any(history.slots for history in findings.histories):
        yield _panels(findings)
    if findings.verdict.queues:
        yield _section("All queues", None, queue_table(findings), left_out(findings.verdict.queues, findings))


def _traffic(findings: Findings) -> Element:
    counts = findings.traffic
    entries = [(Ink.ARRIVED, "arrived"), (Ink.RELEASED, "released"), (Ink.SKIPPED, "skipped")]
    legend = _legend(*entries, *([] if counts.is_complete else [(Ink.UNCOUNTED, "not all is counted")]))
    nothing = "No message has arrived."
    if findings.verdict.queues:
        nothing = traffic_text(findings)
    note = f"{traffic_text(findings)} A bar is {span_text(counts.step)}; times are UTC."
    return _chart("Arrival and release", note, legend, _both(findings, traffic) or nothing)


def _gaps(findings: Findings) -> Element:
    legend = _legend((Ink.WAITING, "still missing"), (Ink.FILLED, "came after all"), (Ink.SKIPPED, "skipped"))
    shown, had, unread = len(gap_rows(findings)), len(findings.gaps), findings.traffic.cut_short
    which = f", in {shown} of the {had:,} queues where that was so" if shown < had else ""
    note = f"When seqs were missing though later ones were there, or were skipped, {period_text(findings)}, UTC{which}."
    nothing = "No queue waited for a seq."
    if findings.verdict.queues:
        nothing = f"No queue waited for a seq in the {period_text(findings)}."
    rest = f" Not all of it was read in {counted(unread, 'queue')}." if unread else ""
    return _chart("Gaps", note + rest, legend, _both(findings, gap_timeline) or nothing + rest)


def _lag(findings: Findings) -> Element:
    consumers, shown, behind = findings.overview.consumers, len(most_behind(findings)), findings.verdict.behind
    legend = _legend(*((SERIES[at % len(SERIES)], name) for at, name in enumerate(consumers)))
    note = "Released seqs that a consumer has not done yet"
    note += f", in the {shown} queues that have most of them." if shown < behind else "."
    dead = counted(findings.verdict.dead_letters, "dead letter") if findings.verdict.dead_letters else ""
    note += f" Beside them there {'is' if findings.verdict.dead_letters == 1 else 'are'} {dead}." if dead else ""
    nothing = "No consumer is known."
    if consumers:
        nothing = f"Nothing is due: every consumer is up to date{dead and f', except for {dead}'}."
    return _chart("Lag", note, legend, _both(findings, lag) or nothing)


def _section(title: str, note: str | None, *content: Content) -> Element:
    return tag("section", tag("h2", title), None if note is None else tag("p", note, class_="note"), *content)


def _chart(title: str, note: str, legend: Element, drawn: list[Element] | str) -> Element:
    if isinstance(drawn, str):
        return _section(title, None, tag("p", drawn, class_="nothing"))
    return _section(title, note, legend, *drawn)


def _both(findings: Findings, draw: Callable[[Findings, float], Element | None]) -> list[Element]:
    """Draw a chart for a wide screen and the same for a narrow one: the style shows one of them."""
    drawn = [(kind, draw(findings, width)) for kind, width in (("wide", WIDE), ("narrow", NARROW))]
    return [tag("figure", element, class_=kind) for kind, element in drawn if element is not None]


def _legend(*entries: tuple[Ink, str]) -> Element:
    keys = [tag("li", tag("span", class_=f"key {ink}"), text) for ink, text in entries]
    return tag("ul", *keys, class_="legend")


def _panels(findings: Findings) -> Element:
    shown = [history for history in findings.histories if history.slots][:PANELS]
    cards = [
        tag("figure", tag("figcaption", name_of(one.queue)), panel(findings, one, at), class_="card")
        for at, one in enumerate(shown)
    ]
    legend = _legend(
        (Ink.ARRIVED, "arrived"), (Ink.WAITING, "waits"), (Ink.SKIPPED, "skipped"), (Ink.RELEASED, "position")
    )
    newest = f"the newest {findings.bounds.messages:,} that are released, and as many that wait"
    note = f"Seq by time of arrival, UTC: {newest}. The line is the position, below which all is released."
    return _section("Queue by queue", note, legend, tag("div", *cards, class_="cards"))


def _foot(findings: Findings) -> Element:
    return tag("footer", *(tag("p", sentence) for sentence in _small_print(findings)))


def _small_print(findings: Findings) -> Iterator[str]:
    bounds, untimed = findings.bounds, findings.untimed
    of_each = f"{bounds.messages:,} of the newest released messages of each, and as many that wait"
    yield f"Looked at closely: the worst {counted(bounds.queues, 'queue')} at most, and {of_each}."
    yield "Arrival and release count what is stored: each message once, duplicates and late ones not at all."
    yield "A message counts as released once it and all before it had arrived; moves of the cursor are not kept."
    if untimed:
        yield f"Left out, because their time of arrival is not usable: {counted(untimed, 'message')}."
    if any(line.in_doubt for line in findings.overview.lines):
        read = f"the items of {counted(findings.overview.settled, 'such queue')} were read, not of this one"
        yield f"?: the queue has moved since it began to wait; {read}. The next sweep sees whether it still does."
    yield f"{counted(findings.overview.requests, 'request')}. stream_sort {__version__}."


def _was(count: int) -> str:
    return "was" if count == 1 else "were"


def _all(queues: int) -> str:
    return "the one queue" if queues == 1 else f"all {queues:,} queues"
