"""Late messages and archives: none is deleted that the archive has not, and each comes back as it was."""

from __future__ import annotations

import json
import uuid
from base64 import b64encode
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import StreamSorter
from stream_sort.replay.archive.job import ArchiveOptions, archive
from stream_sort.replay.archive.trim import TrimQueues
from stream_sort.replay.backfill.job import backfill
from stream_sort.replay.backfill.options import BackfillOptions, SinkOptions
from stream_sort.replay.engine.source import Source
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.archive.origin import ArchiveOrigin
from stream_sort.replay.slots import document_of
from tests.spark.backfills import source_of
from tests.spark.exports import make_export

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stream_sort.replay.origins.access import TableAccess
    from stream_sort.replay.ranges import Part

LATE = {"queue": "q", "seq": 5, "text": "late", "raw": b"\x00\xff", "parts": [{"raw": b"x"}, 1.0]}

KEPT = "kept: 1 slot, whose late message came after it was archived: queue 'q', seq 5"


@pytest.fixture
def options(access: TableAccess, sorter: StreamSorter, tmp_path: Path) -> ArchiveOptions:
    control = f"control-{uuid.uuid4().hex[:12]}"
    sorter.stores.control(control).create_table()
    return ArchiveOptions(access, control, Storage(str(tmp_path / "archive")), segment_rows=8)


@pytest.fixture
def trimming(options: ArchiveOptions) -> ArchiveOptions:
    return replace(options, trim=True)


def fill(sorter: StreamSorter, *, reason: str = "given up") -> None:
    assert not sorter.put_many({"queue": "q", "seq": seq} for seq in range(20) if seq not in {5, 6}).rejected
    sorter.skip("q", [5, 6], reason)


def seqs(sorter: StreamSorter) -> tuple[int, ...]:
    return sorter.stores.items.look("q", -1, 100).seqs


def archived_late(options: ArchiveOptions) -> list[object]:
    origin = ArchiveOrigin(options.storage)
    rows = [row for held in origin.ranges() for batch in origin.read(held) for row in batch.to_pylist()]
    return [document_of(row["late"], row["binary"]) for row in rows if row["late"] is not None]


def test_a_late_message_that_came_after_its_slot_was_archived_is_not_trimmed(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions, trimming: ArchiveOptions
) -> None:
    fill(sorter)
    archive(options, spark)
    assert sorter.put(LATE).status == "late"
    for trimmed in (18, 0):
        report = archive(trimming, spark)
        assert (report.complete, report.totals["trimmed"]) == (True, trimmed)
        assert report.notes[1:] == (KEPT,)
        assert seqs(sorter) == (5, 19)
        assert [one.message for one in sorter.late("q")] == [LATE]
    sorter.put_many({"queue": "q", "seq": seq} for seq in range(20, 30))
    assert archive(trimming, spark).totals["trimmed"] == 10
    assert seqs(sorter) == (5, 29)


@pytest.mark.parametrize("reason", ["given up", ""])
def test_a_late_message_that_is_in_the_archive_is_trimmed(
    spark: SparkSession, sorter: StreamSorter, trimming: ArchiveOptions, reason: str
) -> None:
    fill(sorter, reason=reason)
    sorter.put(LATE)
    report = archive(trimming, spark)
    assert (report.complete, report.notes[1:], report.totals["trimmed"]) == (True, (), 19)
    assert seqs(sorter) == (19,)
    assert archived_late(trimming) == [LATE]


class LateComer(TrimQueues):
    """Somebody whose late message comes when its segment was written and nothing is trimmed yet."""

    def __call__(self, part: Part) -> list[object]:  # type: ignore[override]
        self.access.sorter.put(LATE)
        return list(super().__call__(part))


def test_a_late_message_that_comes_while_its_slot_is_archived_is_not_trimmed(
    spark: SparkSession, sorter: StreamSorter, trimming: ArchiveOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(sorter)
    monkeypatch.setattr("stream_sort.replay.archive.job.TrimQueues", LateComer)
    assert archive(trimming, spark).totals["trimmed"] == 18
    assert archived_late(trimming) == []
    assert [one.message for one in sorter.late("q")] == [LATE]


def exported(dynamodb: Any, access: TableAccess, bucket: Path) -> Source:
    items = dynamodb.scan(TableName=access.items_table)["Items"]
    text = json.dumps(items, default=lambda value: b64encode(value).decode())
    return Source(export=str(make_export(bucket, [json.loads(text)]).folder))


@pytest.mark.parametrize("kind", ["archive", "export", "table"])
def test_a_late_message_with_bytes_comes_out_of_a_replay_as_it_was(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions, dynamodb: Any, kind: str
) -> None:
    fill(sorter)
    sorter.put(LATE)
    archive(options, spark)
    access, folder = options.access, Path(options.storage.uri)
    source = {
        "archive": Source(archive=options.storage.uri),
        "export": exported(dynamodb, access, folder.with_name("bucket")),
        "table": source_of(access),
    }[kind]
    name = uuid.uuid4().hex[:12]
    target = StreamSorter(f"to-items-{name}", f"to-cursor-{name}", client=dynamodb)
    target.create_tables()
    sink = SinkOptions("table", to_items_table=f"to-items-{name}", to_cursor_table=f"to-cursor-{name}")
    source = replace(source, endpoint_url=access.endpoint_url, region=access.region)
    assert backfill(BackfillOptions(source, sink, checkpoint=str(folder.with_name("ledger"))), spark).complete
    assert [one.message for one in target.late("q")] == [LATE]
