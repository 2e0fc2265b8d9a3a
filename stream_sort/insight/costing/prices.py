"""What a load costs in dollars: how much there is of what AWS charges for, times prices that anybody may replace."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from stream_sort.errors import InvalidInput, shown
from stream_sort.insight.costing.formula import HOURS, RECORDS_OF_A_MARK, SWEEPS_OF_ALL, Load, monthly

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

REGION = "us-east-1"
AS_OF = "looked up in November 2026"
GB = 2**30
DAYS = HOURS / 24
SECONDS = HOURS * 3600
# An item takes so much more at rest than it weighs when it is written.
INDEXING_BYTES = 100
# SQS: messages a call, the bytes that count as one request, and how Lambda asks two queues that are empty.
SQS_BATCH, SQS_CHUNK = 10, 65_536
IDLE_POLLS = 2 * 5 * SECONDS / 20
STREAM_POLLS = 4 * SECONDS
# Runs of process that may share the moves of one batch of enqueue: the template's Parallelization.
PARALLEL = 4
MILLION = 1_000_000
MOST = {"keep_days": 36_500, "memory": 10_240, "request_ms": 900_000}
MOST_USD = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars for so many of something."""

    usd: float
    per: int
    what: str


PRICES = {
    "write-units": Price(0.625, MILLION, "DynamoDB write request units, on demand"),
    "read-units": Price(0.125, MILLION, "DynamoDB read request units, on demand"),
    "storage": Price(0.25, 1, "DynamoDB storage, GB-month"),
    "backup": Price(0.20, 1, "point-in-time recovery, GB-month"),
    "stream-reads": Price(0.0, MILLION, "reads of the stream; none are charged to Lambda"),
    "lambda-requests": Price(0.20, MILLION, "runs of functions"),
    "lambda-gb-seconds": Price(13.3334, MILLION, "time of functions, GB-seconds on arm64"),
    "sqs-requests": Price(0.40, MILLION, "SQS, standard queues"),
    "sqs-fifo-requests": Price(0.50, MILLION, "SQS, FIFO queues"),
}


@dataclass(frozen=True, slots=True)
class StackTerms:
    """What a deployed stack adds: where messages come from and go to, how long they stay, how long functions take."""

    source: bool = True
    sink: bool = True
    keep_days: float = 30.0
    memory: int = 512
    request_ms: float = 10.0

    def __post_init__(self) -> None:
        for name, most in MOST.items():
            if not 0 <= getattr(self, name) <= most:
                raise InvalidInput(f"{name} is {shown(getattr(self, name))}; it must be from 0 to {most:,}")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the bill."""

    name: str
    what: str
    quantity: float
    usd: float


def bill(load: Load, terms: StackTerms, prices: Mapping[str, float]) -> list[Line]:
    """Return all lines of a month's bill."""
    quantities = _quantities(load, terms)
    return [
        Line(name, price.what, quantities[name], quantities[name] / price.per * prices.get(name, price.usd))
        for name, price in PRICES.items()
    ]


def prices_of(assignments: Iterable[str], file: Path | None = None) -> dict[str, float]:
    """Prices from a JSON file, and from texts such as write-units=0.7, which go before it; or InvalidInput."""
    found: dict[str, float] = {}
    if file is not None:
        found |= {name: _usd(name, value) for name, value in _entries(file).items()}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not equals:
            raise InvalidInput(f"{shown(text)} is not a price; give one as NAME=USD, such as write-units=0.7")
        found[name.strip()] = _usd(name.strip(), value)
    return found


def _entries(file: Path) -> dict[str, object]:
    try:
        entries = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot read prices from {shown(str(file))}: {error}") from None
    if not isinstance(entries, dict):
        raise InvalidInput(
            f'{shown(str(file))} holds no prices; it must be a JSON object, such as {{"write-units": 0.7}}'
        )
    return entries


def _usd(name: str, value: object) -> float:
    if name not in PRICES:
        raise InvalidInput(f"there is no price {shown(name)}; there are {', '.join(PRICES)}")
    try:
        usd = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]  # what else it is, it raises
    except (TypeError, ValueError, OverflowError):
        usd = math.nan
    if not 0 <= usd <= MOST_USD:
        raise InvalidInput(f"the price of {name} is {shown(value)}; it must be dollars, from 0 to {MOST_USD:,}")
    return usd


def _quantities(load: Load, terms: StackTerms) -> dict[str, float]:
    steps = monthly(load)
    batches = load.messages / load.batch
    held = load.messages * (load.item_bytes + INDEXING_BYTES) * terms.keep_days / DAYS / GB
    sent = load.messages * ceil(load.size / SQS_CHUNK) if terms.sink else 0.0
    wakes = (batches * min(PARALLEL, load.queues_a_batch) + load.marks * RECORDS_OF_A_MARK) * load.consumers
    calls = sum(work.requests for work in steps.values()) + sent
    return {
        "write-units": sum(work.write_units for work in steps.values()),
        "read-units": sum(work.read_units for work in steps.values()),
        "storage": held,
        "backup": held,
        "stream-reads": STREAM_POLLS * load.consumers,
        "lambda-requests": batches + wakes + load.sweeps + SWEEPS_OF_ALL,
        "lambda-gb-seconds": calls * terms.request_ms / 1000 * terms.memory / 1024,
        "sqs-requests": _source_requests(load) if terms.source else 0.0,
        "sqs-fifo-requests": sent,
    }


def _source_requests(load: Load) -> float:
    """Send, receive and delete, ten messages a call; and to ask while there is nothing."""
    together = min(SQS_BATCH, load.batch)
    chunks = ceil(together * load.size / SQS_CHUNK)
    return load.messages / together * (2 * chunks + 1) + IDLE_POLLS
