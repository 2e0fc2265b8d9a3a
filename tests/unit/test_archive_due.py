"""How queues stand with their archive, where the tables say less than the archive does."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from stream_sort import StreamSorter
from stream_sort.errors import SettingsError
from stream_sort.replay.access import TableAccess
from stream_sort.replay.archive.options import ArchiveOptions
from stream_sort.replay.archive.plan import SegmentPlan, fix, mark_finished
from stream_sort.replay.archive.segments import write_segment
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.table import TableOrigin
from tests.unit.faulty import Faulty, message

if TYPE_CHECKING:
    from pathlib import Path

    from stream_sort.core.records import Cursor
    from stream_sort.replay.archive.due import Due

ACCESS = TableAccess("Items", "Cursor", region="eu-west-1")


@pytest.fixture
def sorter(client: Faulty, monkeypatch: pytest.MonkeyPatch) -> StreamSorter:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "y")
    sorter = StreamSorter(client=client)
    sorter.stores.control("Control").create_table()
    sorter.put_many(map(message, range(20)))
    return sorter


@pytest.fixture
def options(sorter: StreamSorter, tmp_path: Path) -> ArchiveOptions:
    """Two runs, up to seq 9 and 19; the watermark is that of the first."""
    assert sorter.position("q") == 19
    options = ArchiveOptions(ACCESS, "Control", Storage(str(tmp_path / "archive")))
    for plan in (SegmentPlan("q", -1, (4, 9)), SegmentPlan("q", 9, (19,))):
        fix(options.storage, plan)
        for held in plan.segments:
            write_segment(options.storage, held, TableOrigin(ACCESS).read(held))
        mark_finished(options.storage, plan)
    options.ledgers().marks.set_watermark("q", None, 9, began=-1)
    return options


def row(sorter: StreamSorter) -> Cursor:
    found = sorter.stores.cursors.get("q")
    assert found is not None
    return found


def due(options: ArchiveOptions, cursor: Cursor) -> Due:
    (found,) = options.ledgers().due([cursor])
    return found


def test_an_archive_that_goes_beyond_what_is_released_is_refused_whatever_its_watermark_says(
    client: Faulty, sorter: StreamSorter, options: ArchiveOptions
) -> None:
    key = {"queue": {"S": "q"}}
    wire = client.get_item(TableName="Cursor", Key=key)["Item"]
    change = {"UpdateExpression": "SET #at = :at", "ExpressionAttributeNames": {"#at": "seq"}}
    assert wire["seq"] == {"N": "19"}
    client.update_item(TableName="Cursor", Key=key, ExpressionAttributeValues={":at": {"N": "12"}}, **change)
    assert row(sorter).position == 12
    with pytest.raises(SettingsError, match=r"up to seq 19, and released up to 12 only.* begin another archive"):
        due(options, row(sorter))


def test_what_was_released_and_archived_since_its_row_was_read_is_not_beyond(
    sorter: StreamSorter, options: ArchiveOptions
) -> None:
    found = due(options, replace(row(sorter), position=12))
    assert (found.problem, found.after) == ("", 9)


def test_a_watermark_below_what_is_trimmed_is_moved_to_where_the_archive_ends(
    sorter: StreamSorter, options: ArchiveOptions
) -> None:
    sorter.stores.cursors.set_floor("q", 15)
    found = due(options, row(sorter))
    assert (found.problem, found.after, found.lost, found.lacks_watermark) == ("", 19, None, True)
    # Nothing proves it where something is lost.
    for name in options.storage.list("queues/"):
        if "/0000000000000000010." in name:
            options.storage.delete(name)
    found = due(options, row(sorter))
    assert (found.after, found.lacks_watermark) == (9, False)
    assert "archived up to seq 9 and trimmed up to 15" in found.problem
