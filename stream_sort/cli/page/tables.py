"""The tables of the page: what is in trouble and what to do, and all queues, the worst first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_sort.cli.page.elements import fill, tag
from stream_sort.insight.report import is_in_trouble
from stream_sort.insight.wording import age, counted, moment, seqs_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from xml.etree.ElementTree import Element

    from stream_sort.cli.page.elements import Content
    from stream_sort.insight.history import History
    from stream_sort.insight.overview import QueueLine
    from stream_sort.insight.report import Findings
    from stream_sort.insight.wording import CommandText
    from stream_sort.model.consumption import Parked

DEAD = "Dead"


def trouble_table(findings: Findings, command: CommandText) -> Element | None:
    """Each queue in trouble: what is the matter, since when, and the command that says more; None if there is none."""
    lines = [line for line in findings.overview.lines if is_in_trouble(line)]
    if not lines:
        return None
    histories = {history.queue: history for history in findings.histories}
    body = tag("tbody")
    for line in lines[: findings.bounds.rows]:
        matters = tag("td", *_matters(line, histories.get(line.queue), findings.now), data_label="What is the matter")
        more = tag("td", tag("code", command("explain", line.queue)), data_label="Learn more, and free it")
        body.append(tag("tr", _name(line), matters, more, class_=_class(line)))
    return _table("trouble", ("Queue", "What is the matter", "Learn more, and free it"), body)


def queue_table(findings: Findings) -> Element:
    """All queues, or the worst of many."""
    consumers = findings.overview.consumers
    dead = [DEAD] if findings.verdict.dead else []
    columns = ["Queue", "State", "Position", "Gap age", "Policy", *dead, *(f"Lag of {name}" for name in consumers)]
    body = tag("tbody")
    for line in findings.overview.lines[: findings.bounds.rows]:
        cells: list[Element] = [
            _name(line),
            tag("td", tag("span", state(line), class_=f"pill {_class(line)}"), data_label="State"),
            _number(line.position, "Position"),
            _number("" if line.gap_age is None else age(line.gap_age) + ("?" if line.in_doubt else ""), "Gap age"),
            tag("td", str(line.policy), data_label="Policy"),
            *(_number(sum(line.dead.values()), name) for name in dead),
            *(_number(line.lag.get(name, 0), f"Lag of {name}") for name in consumers),
        ]
        body.append(tag("tr", *cells, class_=_class(line)))
    return _table("queues", columns, body)


def left_out(count: int, findings: Findings) -> Content:
    """Say that a table does not show all."""
    more = count - findings.bounds.rows
    if more <= 0:
        return None
    return tag(
        "p", f"{counted(more, 'more queue')} {'is' if more == 1 else 'are'} not shown; see --rows.", class_="note"
    )


def state(line: QueueLine) -> str:
    """Return the state of a queue in a word."""
    if line.parked:
        return "parked"
    if line.dead:
        return "dead letters"
    if line.waits:
        return "waiting"
    if line.in_doubt:
        return "waiting?"
    return "behind" if any(line.lag.values()) else "well"


def name_of(queue: str) -> Element:
    """Return a queue's name, apart from the direction of the text around it; whole when pointed at."""
    return tag("bdi", queue, class_="name", title=queue)


def _matters(line: QueueLine, history: History | None, now: float) -> Iterator[Element]:
    for consumer, parked in line.parked.items():
        yield tag("p", *_parked(consumer, parked, now))
    for consumer, count in line.dead.items():
        yield tag("p", f"{counted(count, 'dead letter')} of {consumer}: given up on, not delivered.")
    if line.waits and line.gap_age is not None:
        gaps = [] if history is None else [gap for gap in history.gaps if gap.end is None]
        missing = f"seq {seqs_text([range(gaps[0].first, gaps[0].last + 1)])}" if gaps else f"seq {line.position + 1}"
        told = [f"Waits for {missing}, since {moment(now - line.gap_age)} ({age(line.gap_age)})"]
        told += [f"{len(gaps):,} gaps in all"] if len(gaps) > 1 else []
        yield tag("p", "; ".join(told) + f". Policy: {line.policy}.")


def _parked(consumer: str, parked: Parked, now: float) -> Iterator[Content]:
    again = "not tried again automatically" if parked.next_try is None else f"next try at {moment(parked.next_try)}"
    since = f"since {moment(parked.since)} ({age(max(0.0, now - parked.since))})"
    yield f"Parked for {consumer} at seq {parked.seq}, {since}, after {counted(parked.attempts, 'attempt')}; {again}: "
    yield tag("span", parked.error, class_="error")


def _name(line: QueueLine) -> Element:
    return tag("th", name_of(line.queue), scope="row")


def _number(value: int | str, label: str) -> Element:
    text = f"{value:,}" if isinstance(value, int) else value
    return tag("td", text, class_="number", data_label=label)


def _class(line: QueueLine) -> str:
    if line.dead and not line.parked:
        return "is-dead"
    return "is-unsure" if line.in_doubt and not line.parked else f"is-{state(line)}"


def _alignment(column: str) -> str | None:
    return "number" if column in {"Position", "Gap age", DEAD} or column.startswith("Lag of ") else None


def _table(kind: str, columns: Iterable[str], body: Element) -> Element:
    row = tag("tr")
    fill(row, (tag("th", name, scope="col", class_=_alignment(name)) for name in columns))
    return tag("div", tag("table", tag("thead", row), body, class_=kind), class_="scroll")
