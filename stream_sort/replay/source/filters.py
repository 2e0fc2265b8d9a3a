"""Spark's filters on queue and seq as a narrower selection. Pure but for Spark's names of filters."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from stream_sort.model.message import MAX_SEQ, MIN_SEQ

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql.datasource import Filter

    from stream_sort.replay.ranges import Selection


def pushed(filters: Sequence[Filter], selection: Selection, keys: tuple[str, str]) -> tuple[Selection, list[Filter]]:
    """Return the selection with all filters in it that say something of the keys, and the filters that do not."""
    left: list[Filter] = []
    for one in filters:
        narrower = _narrowed(one, selection, keys)
        if narrower is None:
            left.append(one)
        else:
            selection = narrower
    return selection, left


def _narrowed(one: Filter, selection: Selection, keys: tuple[str, str]) -> Selection | None:
    column = getattr(one, "attribute", None)
    if isinstance(one, IsNotNull) and column in {(keys[0],), (keys[1],)}:
        return selection
    if column == (keys[0],):
        return _of_queue(one, selection)
    return _of_seq(one, selection) if column == (keys[1],) else None


def _of_queue(one: Filter, selection: Selection) -> Selection | None:
    if isinstance(one, EqualTo):
        names = (one.value,)
    elif isinstance(one, In):
        names = tuple(one.value)
    else:
        return None
    if not all(isinstance(name, str) for name in names):
        return None
    return replace(selection, only=frozenset(names) if selection.only is None else selection.only & set(names))


def _of_seq(one: Filter, selection: Selection) -> Selection | None:  # noqa: PLR0911  # one for each kind of filter
    value = getattr(one, "value", None)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    match one:
        case EqualTo():
            return _between(selection, value, value)
        case GreaterThan():
            return _between(selection, value + 1, MAX_SEQ)
        case GreaterThanOrEqual():
            return _between(selection, value, MAX_SEQ)
        case LessThan():
            return _between(selection, MIN_SEQ, value - 1)
        case LessThanOrEqual():
            return _between(selection, MIN_SEQ, value)
    return None


def _between(selection: Selection, first: int, last: int) -> Selection:
    low = first if selection.from_seq is None else max(first, selection.from_seq)
    high = last if selection.to_seq is None else min(last, selection.to_seq)
    if low > high or low > MAX_SEQ or high < MIN_SEQ:
        return replace(selection, only=frozenset())
    return replace(selection, from_seq=max(low, MIN_SEQ), to_seq=min(high, MAX_SEQ))
