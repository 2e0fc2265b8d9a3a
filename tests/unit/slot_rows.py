"""Slots made up for tests of what is stored of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa

from stream_sort.replay.slots import SLOTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stream_sort.replay.ranges import Range

START = 1_700_000_000_000


def slots(held: Range, skipped: Iterable[int] = (), batch_rows: int = 7) -> list[pa.RecordBatch]:
    """A slot for each seq, one a second from START on, in batches of a few."""
    gone = set(skipped)
    rows = [
        {
            "queue": held.queue,
            "seq": seq,
            "item": None if seq in gone else json.dumps({"queue": held.queue, "seq": seq, "text": "x" * (seq % 50)}),
            "arrived_at": START + 1_000 * seq,
            "skipped": "lost" if seq in gone else None,
        }
        for seq in range(held.after + 1, held.through + 1)
    ]
    pages = [rows[start : start + batch_rows] for start in range(0, len(rows), batch_rows)]
    return [pa.RecordBatch.from_pylist(page, schema=SLOTS) for page in pages]


def rows_of(batches: Iterable[pa.RecordBatch]) -> list[dict[str, object]]:
    """All rows of some batches, in order, each of the right form."""
    return [row for batch in batches for row in _checked(batch).to_pylist()]


def _checked(batch: pa.RecordBatch) -> pa.RecordBatch:
    assert batch.schema.equals(SLOTS)
    return batch
