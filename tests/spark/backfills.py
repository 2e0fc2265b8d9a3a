"""How the tests run backfills and look at what came out."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from stream_sort.replay.engine.source import Source

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stream_sort import StreamSorter
    from stream_sort.replay.origins.access import TableAccess


def source_of(access: TableAccess, control_table: str = "") -> Source:
    return Source(
        items_table=access.items_table,
        cursor_table=access.cursor_table,
        control_table=control_table,
        endpoint_url=access.endpoint_url,
        region=access.region,
    )


def table_options(access: TableAccess) -> list[str]:
    return [
        *("--items-table", access.items_table),
        *("--cursor-table", access.cursor_table),
        *("--endpoint-url", access.endpoint_url or ""),
        *("--region", access.region or ""),
    ]


def fill(sorter: StreamSorter, lengths: Mapping[str, int], seed: int = 1) -> None:
    """Put so many messages into each queue, shuffled."""
    messages = [
        {"queue": queue, "seq": seq, "text": f"{queue} {seq}"}
        for queue, length in lengths.items()
        for seq in range(length)
    ]
    random.Random(seed).shuffle(messages)
    assert sorter.put_many(messages).accepted == len(messages)


def files(out: str | Path) -> dict[str, bytes]:
    """The files of a job by name, without its ledger."""
    return {file.name: file.read_bytes() for file in sorted(Path(out).iterdir()) if file.is_file()}


def rows(out: str | Path) -> list[tuple[str, int]]:
    """Queue and seq of every row, file by file."""
    return [place for name in files(out) for place in _places(Path(out) / name)]


def _places(file: Path) -> list[tuple[str, int]]:
    table: Any = pq.read_table(file)
    return list(zip(table["queue"].to_pylist(), table["seq"].to_pylist(), strict=True))
