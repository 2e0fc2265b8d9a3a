"""`stream-sort cost`: what a load will cost, before it comes. Asks nobody: it is the formula of docs/cost.md."""

from __future__ import annotations

import re
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stream_sort.cli.arguments import Json, amount_in
from stream_sort.cli.output import plain_errors, print_json, say
from stream_sort.cli.tables import show_table, tabled
from stream_sort.errors import InvalidInput, shown
from stream_sort.insight.costing.formula import Load, monthly
from stream_sort.insight.costing.prices import AS_OF, MILLION, PRICES, REGION, StackTerms, bill, prices_of
from stream_sort.insight.costing.work import Work
from stream_sort.model.durations import DAY, MILLISECOND, MINUTE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.insight.costing.prices import Line

AMOUNT = re.compile(r"([0-9][0-9_,]{0,20}(?:\.[0-9]{1,15})?)(?:[eE]\+?([0-9]{1,2}))?\s*([kKmMgGbB]?)")
SCALES = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "b": 1e9}
MOST = 1e15


class MessageSource(StrEnum):
    """Where messages come from."""

    SQS = "sqs"
    NONE = "none"


class Sink(StrEnum):
    """Where `process` hands them."""

    SQS_FIFO = "sqs-fifo"
    NONE = "none"


@tabled
def cost(  # noqa: PLR0913  # each is an option
    *,
    messages: Annotated[str, typer.Option(metavar="N", help="Messages a month, such as 10M, 1.5k or 2e6; 0 is idle.")],
    batch: Annotated[int, typer.Option(metavar="N", help="Messages put at once; 1 is one by one.")] = 100,
    size: Annotated[int, typer.Option(metavar="BYTES", help="A message: its field names and values.")] = 300,
    queues_a_batch: Annotated[int, typer.Option(metavar="N", help="Queues that one batch touches.")] = 1,
    queues: Annotated[int, typer.Option(metavar="N", help="Queues in all.")] = 100,
    shuffled: Annotated[int, typer.Option(metavar="N", help="How many of a queue are mixed up; 1 is in order.")] = 1,
    consumers: Annotated[int, typer.Option(metavar="N", help="Who reads all queues.")] = 1,
    batch_size: Annotated[int, typer.Option(metavar="N", help="Messages a consumer gets at once.")] = 100,
    sweep_minutes: Annotated[str, typer.Option(metavar="N", help="Minutes between two sweeps, or 5m, 1h.")] = "1",
    keep_days: Annotated[str, typer.Option(metavar="DAYS", help="Days until messages are trimmed, or 36h, 7d.")] = "30",
    source: Annotated[MessageSource, typer.Option(help="Where messages come from.")] = MessageSource.SQS,
    sink: Annotated[Sink, typer.Option(help="Where process puts them; none is your own handler.")] = Sink.SQS_FIFO,
    memory: Annotated[int, typer.Option(metavar="MB", help="Memory of each function.")] = 512,
    request_ms: Annotated[str, typer.Option(metavar="MS", help="Time of one request, with all around it.")] = "10",
    price: Annotated[list[str] | None, typer.Option(metavar="NAME=USD", help="Another price; see the table.")] = None,
    prices: Annotated[Path | None, typer.Option(metavar="FILE", help='Other prices, as JSON: {"NAME": USD}.')] = None,
    as_json: Json = False,
) -> None:
    """Say what a load asks of DynamoDB, step by step, and what a month of it costs. docs/cost.md has the formula.

    Example: stream-sort cost --messages 10M --batch 100 --size 300
    """
    with plain_errors():
        amount = amount_of(messages)
        load = Load(
            amount, batch, size, queues_a_batch, queues, shuffled, consumers, batch_size, _minutes(sweep_minutes)
        )
        days = amount_in(DAY, keep_days, "--keep-days")
        request = amount_in(MILLISECOND, request_ms, "--request-ms")
        terms = StackTerms(source is MessageSource.SQS, sink is Sink.SQS_FIFO, days, memory, request)
        lines = bill(load, terms, prices_of(price or [], prices))
        if as_json:
            print_json(_facts(load, terms, lines))
        else:
            _show(load, lines)


def amount_of(text: str) -> float:
    """Return a number of messages, such as 10M; InvalidInput if it is none."""
    match = AMOUNT.fullmatch(text.strip())
    if match is None:
        raise InvalidInput(f"{shown(text)} is not a number of messages; give one such as 250000, 1.5k, 10M or 2e6")
    digits, power, scale = match.groups(default="")
    amount = float(digits.replace(",", "").replace("_", "")) * 10.0 ** int(power or 0) * SCALES[scale.lower()]
    if amount and not 1 <= amount <= MOST:
        raise InvalidInput(f"{shown(text)} messages a month: it must be 0, or from 1 to {MOST:.0e}")
    return amount


def _minutes(text: str) -> int:
    minutes = amount_in(MINUTE, text, "--sweep-minutes")
    if not minutes.is_integer():
        raise InvalidInput(f"--sweep-minutes {shown(text)} is {minutes:g} minutes; it must be whole minutes")
    return int(minutes)


def _facts(load: Load, terms: StackTerms, lines: list[Line]) -> dict[str, Any]:
    steps = monthly(load)
    total = sum(line.usd for line in lines)
    return {
        "load": asdict(load),
        "terms": asdict(terms),
        "a_message": {name: asdict(work * (1 / load.messages)) for name, work in _with_sum(steps).items()}
        if load.messages
        else None,
        "a_month": {name: asdict(work) for name, work in _with_sum(steps).items()},
        "bill": [asdict(line) for line in lines],
        "usd": {"a_month": total, "a_million_messages": total / load.messages * MILLION if load.messages else None},
        "prices": {"region": REGION, "as_of": AS_OF},
    }


def _show(load: Load, lines: list[Line]) -> None:
    _show_steps(load)
    rows = [(one.name, one.what, f"{one.quantity:,.1f}", f"{one.usd:,.2f}") for one in lines if one.quantity]
    total = sum(line.usd for line in lines)
    show_table(("price", "what", "a month", "USD"), _aligned([*rows, ("in all", "", "", f"{total:,.2f}")]))
    each = f", {total / load.messages * MILLION:,.3f} USD a million messages" if load.messages else ""
    say(f"{total:,.2f} USD a month{each}")
    say(f"{REGION}, {AS_OF}, without free tiers; --price {next(iter(PRICES))}=USD sets another price")


def _show_steps(load: Load) -> None:
    """Return what each step asks for: for one message, if there are any, and in a month."""
    names, steps = ("requests", "write units", "read units"), _with_sum(monthly(load)).items()
    a_month = {name: _figures(work, 0) for name, work in steps}
    each = {name: _figures(work * (1 / load.messages), 4) if load.messages else () for name, work in steps}
    columns = ("step", *(names if load.messages else ()), f"a month: {names[0]}", *names[1:])
    show_table(columns, _aligned([(name, *each[name], *a_month[name]) for name, _ in steps]))


def _with_sum(steps: dict[str, Work]) -> dict[str, Work]:
    return {**steps, "in all": sum(steps.values(), Work())}


def _figures(work: Work, digits: int) -> tuple[str, str, str]:
    return f"{work.requests:,.{digits}f}", f"{work.write_units:,.{digits}f}", f"{work.read_units:,.{digits}f}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the same rows, all that begins with a digit to the right of its column."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        [cell.rjust(width) if cell[:1].isdigit() else cell for cell, width in zip(row, widths, strict=True)]
        for row in rows
    ]
