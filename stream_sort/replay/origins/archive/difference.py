"""Whether what is stored in the table is what is archived, slot by slot. Knows neither tables nor files.

When a message came is not compared: one that was put again, or put back from the archive, is the same message.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from stream_sort.model.message import same_value
from stream_sort.replay.slots import document_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Difference:
    """A slot that is not as it is archived, and how they differ."""

    seq: int
    told: str

    @property
    def problem(self) -> str:
        """What keeps the queue from being trimmed."""
        return (
            f"seq {self.seq} in the table is not the message that is archived ({self.told}); nothing from there on was "
            "deleted. If the table was restored to an earlier time and has taken other messages since, begin another "
            "archive for it, first without --trim; if segments of this archive were replaced by another archive's, put "
            "the right ones back"
        )


def first_difference(table: Iterable[pa.RecordBatch], archived: Iterable[pa.RecordBatch]) -> Difference | None:
    """Return the first slot of a range that differs; both sides are in order, and a page of each is held in memory.

    What is in the archive only was deleted before. Late messages do not count: they may come when all is archived.
    """
    pages = (page for page in archived if page.num_rows)
    held, end = None, None
    for batch in table:
        left = batch
        while left.num_rows:
            first = left.column("seq")[0].as_py()
            while end is None or end < first:
                held = next(pages, None)
                if held is None:
                    return Difference(first, "it is not in the archive")
                end = held.column("seq")[-1].as_py()
            if held is not None and held.column("seq")[0].as_py() > first:
                return Difference(first, "it is not in the archive")
            count = pc.sum(pc.less_equal(left.column("seq"), end)).as_py()
            for found in _differences(left.slice(0, count), held):
                return found
            left = left.slice(count)
    return None


def _differences(stored: pa.RecordBatch, page: pa.RecordBatch) -> Iterator[Difference]:
    """Yield the slots that are not those of a page, whose seqs are contiguous."""
    seqs = stored.column("seq")
    archived = page.take(pc.subtract(seqs, page.column("seq")[0]))
    tombstones = pc.is_valid(stored.column("skipped"))
    same = pc.and_(_equal(stored, archived, "seq"), _equal(stored, archived, "skipped"))
    same = pc.and_(same, _equal(stored, archived, "item"))
    # Beside a tombstone, it tells of the bytes of a late message.
    same = pc.and_(same, pc.or_(tombstones, _equal(stored, archived, "binary")))
    doubts = pc.invert(same)
    for one, other in zip(stored.filter(doubts).to_pylist(), archived.filter(doubts).to_pylist(), strict=True):
        told = _describe(one, other)
        if told:
            yield Difference(one["seq"], told)


def _equal(one: pa.RecordBatch, other: pa.RecordBatch, name: str) -> pa.Array:
    both = pc.and_(pc.is_null(one.column(name)), pc.is_null(other.column(name)))
    return pc.or_(both, pc.fill_null(pc.equal(one.column(name), other.column(name)), False))  # noqa: FBT003


def _describe(stored: dict[str, Any], archived: dict[str, Any]) -> str:
    """Return how a slot and an archived one differ; empty where only their texts do."""
    if stored["seq"] != archived["seq"]:
        return "it is not in its place in the archive"
    kinds = ["a message" if one["skipped"] is None else "a tombstone" for one in (stored, archived)]
    if kinds[0] != kinds[1]:
        return f"it is {kinds[0]}, and the archive has {kinds[1]}"
    if stored["skipped"] is not None:
        return "" if stored["skipped"] == archived["skipped"] else "it was skipped for another reason"
    documents = [document_of(one["item"], one["binary"], exact=True) for one in (stored, archived)]
    return "" if _same(*documents) else "their contents differ"


def _same(stored: Any, archived: Any) -> bool:
    """Compare as `same_value` does, but for numbers, of which others write more digits than a float has."""
    if isinstance(stored, dict):
        return (
            isinstance(archived, dict)
            and stored.keys() == archived.keys()
            and all(_same(value, archived[name]) for name, value in stored.items())
        )
    if isinstance(stored, list):
        return isinstance(archived, list) and len(stored) == len(archived) and all(map(_same, stored, archived))
    if isinstance(stored, Decimal):
        return isinstance(archived, Decimal) and _same_number(stored, archived)
    return same_value(stored, archived)


def _same_number(stored: Decimal, archived: Decimal) -> bool:
    if stored.is_signed() != archived.is_signed():
        return False
    # What is put back from the archive has passed through a float.
    return stored == archived or stored == Decimal(repr(float(archived)))
