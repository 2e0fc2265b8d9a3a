"""An archive as an audit sees it, with its tables at hand: what they know nothing of is not called complete."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stream_sort import StreamSorter
from stream_sort.errors import ArchiveDamaged, InvalidInput, SettingsError
from stream_sort.replay.archive.options import ArchiveOptions
from stream_sort.replay.audit.archive_survey import ArchiveSurvey
from stream_sort.replay.audit.promised import promised
from stream_sort.replay.engine.source import Source
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.access import TableAccess
from stream_sort.replay.origins.archive.origin import ArchiveOrigin
from stream_sort.replay.origins.archive.owner import Owner
from stream_sort.replay.origins.archive.plan import SegmentPlan, fix, mark_finished
from stream_sort.replay.origins.archive.segments import write_segment
from stream_sort.replay.origins.table import TableOrigin
from tests.unit.faulty import Faulty, message

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.replay.origins.archive.manifest import Manifest

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
    """Two runs, up to seq 9 and 19, and the table is trimmed as far."""
    options = ArchiveOptions(ACCESS, "Control", Storage(str(tmp_path / "archive")))
    Owner.of(ACCESS).claim(options.storage)
    for plan in (SegmentPlan("q", -1, (4, 9)), SegmentPlan("q", 9, (19,))):
        write_run(options, plan)
    options.due_reader().marks.set_watermark("q", None, 19, began=-1)
    sorter.stores.cursors.set_floor("q", 19)
    return options


def write_run(options: ArchiveOptions, plan: SegmentPlan) -> None:
    fix(options.storage, plan)
    for held in plan.segments:
        write_segment(options.storage, held, TableOrigin(ACCESS).read(held))
    mark_finished(options.storage, plan)


def copied(options: ArchiveOptions, *, without: int | None = None) -> ArchiveOptions:
    """The archive at another address, of which no watermark tells; it may lack what begins at a seq or later."""
    copy = replace(options, storage=Storage(options.storage.uri + "-copy"))
    shutil.copytree(options.storage.uri, copy.storage.uri)
    for name in copy.storage.list("queues/"):
        if without is not None and int(name.rpartition("/")[2][:19]) >= without:
            copy.storage.delete(name)
    return copy


def source(options: ArchiveOptions, items_table: str = "Items") -> Source:
    return Source(items_table, "Cursor", "Control", archive=options.storage.uri, region="eu-west-1")


def surveyed(options: ArchiveOptions) -> ArchiveSurvey:
    survey = ArchiveSurvey(options.storage, None, promised(source(options), options.storage, None))
    survey._load()
    return survey


def test_an_archive_with_all_that_its_tables_know_of_is_whole(options: ArchiveOptions) -> None:
    found = surveyed(options)
    assert (found.damaged, found.unmarked) == ([], [])


def test_a_copy_that_ends_before_what_is_trimmed_is_not_complete(options: ArchiveOptions) -> None:
    found = surveyed(copied(options, without=10))
    (damaged,) = found.damaged
    assert (damaged.queue, damaged.rows) == ("q", 10)
    assert "trimmed up to seq 19" in damaged.problem
    assert "ends at 9" in damaged.problem
    assert found.unmarked == []


def test_a_copy_that_holds_all_that_is_trimmed_is_noted(options: ArchiveOptions) -> None:
    found = surveyed(copied(options))
    assert (found.damaged, found.unmarked) == ([], ["q"])


def test_a_copy_of_which_nothing_is_trimmed_is_noted(sorter: StreamSorter, options: ArchiveOptions) -> None:
    sorter.put_many({"queue": "r", "seq": seq} for seq in range(5))
    copy = copied(options)
    write_run(copy, SegmentPlan("r", -1, (2,)))
    found = surveyed(copy)
    assert (found.damaged, found.unmarked) == ([], ["q", "r"])


def test_queues_that_were_trimmed_and_never_archived_are_nothing_to_speak_of(
    sorter: StreamSorter, options: ArchiveOptions
) -> None:
    sorter.put_many({"queue": "r", "seq": seq} for seq in range(9))
    sorter.stores.cursors.set_floor("r", 5)
    found = surveyed(options)
    assert (found.damaged, found.unmarked) == ([], [])


def test_an_archive_that_begins_behind_a_trim_lacks_nothing(sorter: StreamSorter, options: ArchiveOptions) -> None:
    sorter.put_many({"queue": "r", "seq": seq} for seq in range(9))
    sorter.stores.cursors.set_floor("r", 5)
    write_run(options, SegmentPlan("r", 5, (8,)))
    # Its run died before it set the watermark.
    found = surveyed(options)
    assert (found.damaged, found.unmarked) == ([], ["r"])
    options.due_reader().marks.set_watermark("r", None, 8, began=5)
    found = surveyed(options)
    assert (found.damaged, found.unmarked) == ([], [])


def test_what_was_archived_for_the_first_time_meanwhile_is_not_noted(
    sorter: StreamSorter, options: ArchiveOptions
) -> None:
    sorter.put_many({"queue": "r", "seq": seq} for seq in range(9))
    survey = ArchiveSurvey(options.storage, None, promised(source(options), options.storage, None))
    write_run(options, SegmentPlan("r", -1, (8,)))
    options.due_reader().marks.set_watermark("r", None, 8, began=-1)
    survey._load()
    assert (survey.damaged, survey.unmarked) == ([], [])


def test_a_queue_that_the_tables_have_never_seen_is_noted(
    client: Faulty, sorter: StreamSorter, options: ArchiveOptions
) -> None:
    copy = copied(options)
    sorter.put_many({"queue": "r", "seq": seq} for seq in range(3))
    write_run(copy, SegmentPlan("r", -1, (2,)))
    client.delete_item(TableName="Cursor", Key={"queue": {"S": "r"}})
    assert surveyed(copy).unmarked == ["q", "r"]


def test_the_archive_of_another_table_is_refused_with_both_names(client: Faulty, options: ArchiveOptions) -> None:
    StreamSorter("Others", "Cursor", client=client).create_tables()
    with pytest.raises(SettingsError, match=r"table/Others .*it is the archive of .*table/Items "):
        promised(source(options, "Others"), options.storage, None)


def test_an_archive_that_does_not_say_whose_it_is_is_refused_beside_tables(options: ArchiveOptions) -> None:
    options.storage.delete("owner.json")
    with pytest.raises(SettingsError, match=r"owner\.json is missing"):
        promised(source(options), options.storage, None)


def bare(folder: Path) -> None:
    """As it is."""


def unfinished(folder: Path) -> None:
    for mark in (folder / "plans").glob("*.done"):
        mark.unlink()
    next(folder.glob("*.parquet")).unlink()


@pytest.mark.parametrize("change", [bare, unfinished])
def test_a_folder_of_no_queue_is_named_and_keeps_nothing_else_from_being_looked_at(
    options: ArchiveOptions, change: Callable[[Path], None]
) -> None:
    queues = Path(options.storage.uri) / "queues"
    shutil.copytree(queues / "q-q", queues / "q-q.bak")
    change(queues / "q-q.bak")
    found = surveyed(options)
    (damaged,) = found.damaged
    address = options.storage.address("queues/q-q.bak/")
    assert (damaged.queue, damaged.problem.startswith(f"{address}: no queue's folder")) == ("", True)
    assert [one.range.through for one in held(found)] == [4, 9, 19]
    with pytest.raises(ArchiveDamaged, match="no queue's folder") as caught:
        ArchiveOrigin(options.storage).ranges()
    assert caught.value.file == address


def test_files_of_others_beside_the_folders_of_queues_are_left_alone(options: ArchiveOptions) -> None:
    for name in ("queues/.DS_Store", "queues/notes/read.me"):
        options.storage.write(name, b".")
    assert surveyed(options).damaged == []
    assert len(ArchiveOrigin(options.storage).ranges()) == 1


def held(survey: ArchiveSurvey) -> list[Manifest]:
    return survey._manifests


def test_a_queue_that_was_begun_while_the_audit_looked_has_not_lost_its_row(
    sorter: StreamSorter, options: ArchiveOptions
) -> None:
    promises = promised(source(options), options.storage, None)
    sorter.put_many({"queue": "r", "seq": seq} for seq in range(9))
    write_run(options, SegmentPlan("r", -1, (4,)))
    options.due_reader().marks.set_watermark("r", None, 8, began=-1)
    survey = ArchiveSurvey(options.storage, None, promises)
    survey._load()
    assert (survey.damaged, survey.rowless) == ([], [])


@pytest.mark.parametrize("named", [None, ("q", "sound")])
def test_a_cursor_row_that_cannot_be_read_keeps_no_other_queue_from_being_audited(
    client: Faulty, sorter: StreamSorter, options: ArchiveOptions, named: tuple[str, ...] | None
) -> None:
    sorter.put_many({"queue": "sound", "seq": seq} for seq in range(9))
    write_run(options, SegmentPlan("sound", -1, (4,)))
    options.due_reader().marks.set_watermark("sound", None, 8, began=-1)
    client.put_item(TableName="Cursor", Item={"queue": {"S": "q"}, "seq": {"S": "none"}})
    promises = promised(source(options), options.storage, named)
    survey = ArchiveSurvey(options.storage, named, promises)
    survey._load()
    assert ([one.queue for one in survey.damaged], survey.rowless) == (["sound"], [])
    assert [*promises.damaged] == ["q"]


def test_a_queue_that_is_not_archived_is_told_from_an_archive_that_is_not_there(
    options: ArchiveOptions, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput, match=r"archive holds nothing of queue 'nobody', 'no': check the names"):
        ArchiveSurvey(options.storage, ("nobody", "no"))._load()
    with pytest.raises(InvalidInput, match=r"there is no archive at .*elsewhere: check the address"):
        ArchiveSurvey(Storage(str(tmp_path / "elsewhere")), ("q",))._load()
