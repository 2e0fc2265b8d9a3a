"""Puts the slots of an export into order: where each belongs, and which of two in one place counts. Knows no Spark.

A part's slots are counted through from its first seq on. That count, the slot's place, is one number, which Spark
sorts far faster than a queue's name and a seq.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from stream_sort.replay.slots import SLOTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stream_sort.replay.ranges import Part

PLACED = pa.schema(
    [pa.field("part", pa.int32(), nullable=False), pa.field("place", pa.int64(), nullable=False), *SLOTS]
)
EXAMPLES = 20


class Places:
    """Tells where each slot belongs: the index of its part, and its place in there."""

    def __init__(self, parts: Sequence[Part]) -> None:
        # For each queue its ranges in order: their ends; and of each where it starts, its part, its first seq's place.
        self._ends: dict[str, list[int]] = {}
        self._spans: dict[str, list[tuple[int, int, int]]] = {}
        pieces = [(piece, index, base) for index, part in enumerate(parts) for piece, base in _based(part)]
        for piece, index, base in sorted(pieces, key=lambda one: one[0]):
            self._ends.setdefault(piece.queue, []).append(piece.through)
            self._spans.setdefault(piece.queue, []).append((piece.after, index, base))

    def placed(self, slots: pa.RecordBatch) -> pa.RecordBatch:
        """Return the slots that belong somewhere, in batches of PLACED."""
        found = list(map(self._place, slots["queue"].to_pylist(), slots["seq"].to_pylist()))
        parts = pa.array([None if one is None else one[0] for one in found], pa.int32())
        places = pa.array([None if one is None else one[1] for one in found], pa.int64())
        if parts.null_count:
            wanted = parts.is_valid()
            slots, parts, places = slots.filter(wanted), parts.drop_null(), places.drop_null()
        return pa.RecordBatch.from_arrays([parts, places, *slots.columns], schema=PLACED)

    def _place(self, queue: str, seq: int) -> tuple[int, int] | None:
        ends = self._ends.get(queue)
        if ends is None or seq > ends[-1]:
            return None
        after, part, base = self._spans[queue][bisect_left(ends, seq)]
        return (part, base + seq - after - 1) if seq > after else None


@dataclass(slots=True)
class Doubles:
    """What was found twice in one place: the same slot again, or another one, which lost; by queue."""

    again: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    examples: list[tuple[str, int]] = field(default_factory=list)

    @property
    def duplicates(self) -> int:
        """How many slots came again."""
        return self.again.total()

    @property
    def conflicts(self) -> int:
        """How many slots another one had taken."""
        return self.lost.total()

    def add(self, other: Doubles) -> None:
        """Count those of another part, too."""
        self.again += other.again
        self.lost += other.lost
        self.examples = (self.examples + other.examples)[:EXAMPLES]

    def conflict(self, queue: str, seq: int) -> None:
        """Count one that lost."""
        self.lost[queue] += 1
        self.examples = [*self.examples, (queue, seq)][:EXAMPLES]


class SlotsOnce:
    """The slots of a part, one for each place; `doubles` counts what came twice among those that came so far."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self.doubles = Doubles()
        self._slots = without_doubles(batches, self.doubles)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        return next(self._slots)


def without_doubles(batches: Iterable[pa.RecordBatch], doubles: Doubles) -> Iterator[pa.RecordBatch]:
    """Yield the slots, sorted by place, one for each place: the one that arrived first, as in a table."""
    held: pa.RecordBatch | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        joined = batch if held is None else _concatenated([held, batch])
        # The last place may go on in the next batch.
        whole = pc.index(joined["place"], joined["place"][-1]).as_py()
        if whole:
            yield _slots(joined.slice(0, whole), doubles)
        held = joined.slice(whole)
    if held is not None:
        yield _slots(held, doubles)


def _based(part: Part) -> Iterator[tuple[Any, int]]:
    """Yield the ranges of a part, each with the place of its first seq."""
    base = 0
    for piece in part.ranges:
        yield piece, base
        base += len(piece)


def _slots(batch: pa.RecordBatch, doubles: Doubles) -> pa.RecordBatch:
    places = batch["place"]
    steps = pc.subtract(places.slice(1), places.slice(0, batch.num_rows - 1))
    if batch.num_rows > 1 and pc.min(steps).as_py() == 0:
        batch = _first_ones(batch, doubles)
    return pa.RecordBatch.from_arrays([batch[name] for name in SLOTS.names], schema=SLOTS)


def _first_ones(batch: pa.RecordBatch, doubles: Doubles) -> pa.RecordBatch:
    kept: list[dict[str, Any]] = []
    for row in batch.to_pylist():
        if not kept or kept[-1]["place"] != row["place"]:
            kept.append(row)
            continue
        first, second = sorted((kept[-1], row), key=_arrival)
        kept[-1] = first
        if (first["item"], first["skipped"]) == (second["item"], second["skipped"]):
            doubles.again[row["queue"]] += 1
        else:
            doubles.conflict(row["queue"], row["seq"])
    return pa.RecordBatch.from_pylist(kept, schema=batch.schema)


def _arrival(row: dict[str, Any]) -> tuple[bool, int, str, str]:
    """Return what sorts the first to arrive to the front; of two without a time, always the same one."""
    arrived_at = row["arrived_at"]
    return arrived_at is None, arrived_at or 0, row["item"] or "", row["skipped"] or ""


def _concatenated(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    (joined,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return joined
