"""What sweeps of healthy queues ask of DynamoDB, as a formula: the look at waiting queues and at consumers. Pure."""

from __future__ import annotations

from math import ceil

from stream_sort.insight.costing.work import Work, read_units
from stream_sort.model.activity import HOUR, SHARES
from stream_sort.upkeep.activity_reader import CHEAPER_BY_SCAN, ROWS_A_LOOK

KEYS_A_CALL = 100
# A cursor row and its entry in an index, with a name of 36 characters; how much one page of a listing shows.
ROW_BYTES, ENTRY_BYTES, PAGE_BYTES = 100, 60, 1_048_576
# Each key of the index of waiting queues, which are none; the names of all consumers; what the last look kept.
WAITING = Work(SHARES, 0, SHARES / 2)
CONSUMERS, KEPT, KEEP = Work(1, 0, 1), Work(1, 0, 1), Work(1, 1, 0)
PARKED = Work(1, 0, 0.5)
# An entry of the index of active queues that moves to another hour: out of one place, into another.
ANOTHER_HOUR = Work(0, 2, 0)


def watch(queues: float, consumers: int, recent: float, active: float) -> Work:
    """Return the work of one look at consumers.

    Of `queues` in all, `active` were so within the hour, and `recent` ones since the last look, or shortly before.
    """
    if not consumers:
        return CONSUMERS
    rows = _scan(queues) if queues <= ROWS_A_LOOK else _listing(active) + _rows(queues, active)
    keep = KEEP * min(1.0, recent)
    return CONSUMERS + KEPT + keep + rows + (PARKED + _compare(recent)) * consumers


def in_turn(queues: float, consumers: int, recent: float, looks_an_hour: float) -> Work:
    """Return what comes to the looks of an hour for the pass over all queues: once an hour at most, 500 rows a look."""
    if not consumers:
        return Work()
    if queues <= ROWS_A_LOOK:
        return (_compare(queues) + _compare(recent) * -1) * (consumers * min(1.0, looks_an_hour))
    part = _scan(ROWS_A_LOOK) + _compare(ROWS_A_LOOK) * consumers
    return part * min(ceil(queues / ROWS_A_LOOK), looks_an_hour)


def names(queues: float) -> Work:
    """Return the work of listing all queues, where a sweep looks at all of them."""
    return _scan(queues)


def hours(queues: float, moves_a_second: float) -> Work:
    """Return what the index of active queues costs in an hour: each queue that moves is written to it once."""
    return ANOTHER_HOUR * min(queues, moves_a_second * HOUR)


def _scan(rows: float) -> Work:
    return Work(max(1, ceil(rows * ROW_BYTES / PAGE_BYTES)), 0, read_units(rows * ROW_BYTES) / 2)


def _listing(active: float) -> Work:
    """Return the work of asking each key of the index of active queues for its share."""
    share = active / SHARES * ENTRY_BYTES
    return Work(max(1, ceil(share / PAGE_BYTES)), 0, read_units(share) / 2) * SHARES


def _rows(queues: float, active: float) -> Work:
    """Read the rows of active queues by their keys; by a scan where they are not few among all."""
    if queues <= active * CHEAPER_BY_SCAN:
        return _scan(queues)
    return Work(min(active, ceil(active / KEYS_A_CALL)), 0, active / 2)


def _compare(queues: float) -> Work:
    return Work(min(queues, ceil(queues / KEYS_A_CALL)), 0, queues)
