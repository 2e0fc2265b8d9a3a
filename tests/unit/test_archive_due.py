"""How queues stand with their archive, where the tables say less than the archive does."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from stream_sort import OrderedConsumer, StreamSorter
from stream_sort.errors import SettingsError
from stream_sort.replay.archive.job import dry_run
from stream_sort.replay.archive.options import ArchiveOptions
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.access import TableAccess
from stream_sort.replay.origins.archive.owner import Owner
from stream_sort.replay.origins.archive.plan import SegmentPlan, fix, mark_finished
from stream_sort.replay.origins.archive.segments import write_segment
from stream_sort.replay.origins.table import TableOrigin
from stream_sort.replay.ranges import Range
from stream_sort.stores.dynamodb.control_rows import key_of, place_of
from tests.unit.faulty import Faulty, message

if TYPE_CHECKING:
    from pathlib import Path

    from stream_sort.model.records import Cursor
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
    options.due_reader().marks.set_watermark("q", None, 9, began=-1)
    return options


def lose(options: ArchiveOptions, *parts: str) -> None:
    for name in options.storage.list("queues/"):
        if any(part in name for part in parts):
            options.storage.delete(name)


def row(sorter: StreamSorter, queue: str = "q") -> Cursor:
    found = sorter.stores.cursors.get(queue)
    assert found is not None
    return found


def due(options: ArchiveOptions, cursor: Cursor) -> Due:
    (found,) = options.due_reader().due([cursor])
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
    assert (found.problem, found.after) == ("", 19)


def test_a_watermark_below_what_is_trimmed_is_moved_to_where_the_archive_ends(
    sorter: StreamSorter, options: ArchiveOptions
) -> None:
    sorter.stores.cursors.set_floor("q", 15)
    found = due(options, row(sorter))
    assert (found.problem, found.after, found.lost, found.lacks_watermark) == ("", 19, None, True)
    # Nothing proves it where something is lost.
    lose(options, "/plans/0000000000000000010.", "q-q/0000000000000000010.")
    found = due(options, row(sorter))
    assert (found.after, found.lacks_watermark) == (9, False)
    assert "archived up to seq 9 and trimmed up to 15" in found.problem


def test_an_archive_that_is_whole_is_archived_to_its_end_though_its_watermark_falls_into_a_plan(
    sorter: StreamSorter, options: ArchiveOptions
) -> None:
    # One plan in the place of two: the watermark of the first run is inside it.
    lose(options, "/plans/")
    whole = SegmentPlan("q", -1, (4, 9, 19))
    fix(options.storage, whole)
    for marked in (False, True):
        if marked:
            mark_finished(options.storage, whole)
        found = due(options, row(sorter))
        assert (found.after, found.lost, found.problem, len(found.range)) == (19, None, "", 0)
        assert found.lacks_watermark


def test_no_plan_goes_over_a_later_plan_or_mark(sorter: StreamSorter, options: ArchiveOptions) -> None:
    sorter.put_many(map(message, range(20, 40)))
    fix(options.storage, SegmentPlan("q", 29, (39,)))
    lose(options, "/plans/0000000000000000000.", "q-q/0000000000000000000.")
    for gone, through in (("none", 9), ("/plans/0000000000000000010.json", 9), ("/plans/0000000000000000010.", 29)):
        lose(options, gone)
        found = due(options, row(sorter))
        assert found.step(Range("q", -1, 50)) == Range("q", -1, through)
        assert found.step(Range("q", 15, 50)) == Range("q", 15, 29)
        assert found.step(Range("q", 15, 25)) == Range("q", 15, 25)
    assert found.step(Range("q", 39, 50)) == Range("q", 39, 50)


def test_no_plan_goes_over_the_end_of_the_mark_that_stands_where_it_begins(
    sorter: StreamSorter, options: ArchiveOptions
) -> None:
    lose(options, "/plans/0000000000000000010.json")
    assert due(options, row(sorter)).step(Range("q", 9, 50)) == Range("q", 9, 19)


@pytest.mark.parametrize("lost", ["/plans/0000000000000000000.", "/plans/0000000000000000010.", "/plans/"])
def test_lost_plans_of_a_trimmed_queue_are_made_again_from_their_segments(
    sorter: StreamSorter, options: ArchiveOptions, lost: str
) -> None:
    options.due_reader().marks.set_watermark("q", 9, 19, began=-1)
    sorter.stores.cursors.set_floor("q", 15)
    lose(options, lost)
    found = due(options, row(sorter))
    assert (found.problem, found.after, found.lost, found.began) == ("", 19, None, -1)
    made = {plan.first: plan.ends for plan in found.state.unmarked}
    assert made == {"/plans/": {0: (4, 9, 19)}, "/plans/0000000000000000000.": {0: (4, 9)}}.get(lost, {10: (19,)})


def test_a_lost_plan_is_made_again_as_far_as_is_trimmed_though_the_watermark_is_older(
    sorter: StreamSorter, options: ArchiveOptions
) -> None:
    sorter.stores.cursors.set_floor("q", 15)
    lose(options, "/plans/0000000000000000010.")
    found = due(options, row(sorter))
    assert (found.problem, found.after, found.lost, found.lacks_watermark) == ("", 19, None, True)


@pytest.mark.parametrize("name", ["0000000000000000000", "0000000000000000010"])
def test_lost_plans_are_not_made_again_where_a_segment_is_lost(
    sorter: StreamSorter, options: ArchiveOptions, name: str
) -> None:
    options.due_reader().marks.set_watermark("q", 9, 19, began=-1)
    sorter.stores.cursors.set_floor("q", 15)
    lose(options, f"/plans/{name}.", f"q-q/{name}.parquet")
    assert due(options, row(sorter)).problem


def both(options: ArchiveOptions, sorter: StreamSorter) -> dict[str, Due]:
    """How the queue stands, and one beside it."""
    sorter.put_many({"queue": "sound", "seq": seq} for seq in range(5))
    found = options.due_reader().due([row(sorter), row(sorter, "sound")])
    return {one.queue: one for one in found}


def test_an_unfinished_plan_beyond_what_is_released_is_the_problem_of_its_queue(
    sorter: StreamSorter, options: ArchiveOptions
) -> None:
    fix(options.storage, SegmentPlan("q", 19, (29, 39)))
    found = both(options, sorter)
    assert (found["sound"].problem, len(found["sound"].range)) == ("", 5)
    told = found["q"].problem
    assert "is planned in" in told
    assert "up to seq 39, and released up to 19 only" in told
    assert "Where nothing from seq 20 on was trimmed, all files of the queue from there on may be deleted" in told
    # What was released and planned since the row was read is not beyond.
    sorter.put_many(map(message, range(20, 40)))
    assert due(options, replace(row(sorter), position=19)).problem == ""


def test_a_stray_mark_beyond_what_is_released_is_the_problem_of_its_queue(
    sorter: StreamSorter, options: ArchiveOptions
) -> None:
    stray = SegmentPlan("q", 19, (29, 99)).mark
    options.storage.write(stray, b"x")
    for lost in ("none", "q-q/0000000000000000000.parquet"):
        lose(options, lost)
        found = both(options, sorter)
        assert (found["sound"].problem, len(found["sound"].range)) == ("", 5)
        assert f"the mark {stray.rpartition('/')[2]} may be deleted instead" in found["q"].problem
    options.storage.delete(stray)
    assert due(options, row(sorter)).problem == ""


def test_an_archive_beyond_what_is_released_names_the_command_that_puts_back_what_is_not_trimmed(
    sorter: StreamSorter, options: ArchiveOptions, client: Faulty
) -> None:
    sorter.stores.cursors.set_floor("q", 4)
    key = {"queue": {"S": "q"}}
    change = {"UpdateExpression": "SET #at = :at", "ExpressionAttributeNames": {"#at": "seq"}}
    client.update_item(TableName="Cursor", Key=key, ExpressionAttributeValues={":at": {"N": "12"}}, **change)
    with pytest.raises(SettingsError, match=r"backfill --archive \S+ --queue=q --from-seq 5 --sink table --to-items-t"):
        due(options, row(sorter))


@pytest.mark.parametrize(("floor", "problem"), [(-1, ""), (15, "the archive is damaged: from seq 10 on, the last seg")])
def test_a_last_segment_that_ends_before_its_mark_is_written_again_or_named(
    sorter: StreamSorter, options: ArchiveOptions, floor: int, problem: str
) -> None:
    options.due_reader().marks.set_watermark("q", 9, 19, began=-1)
    held = Range("q", 9, 14)
    write_segment(options.storage, held, TableOrigin(ACCESS).read(held))
    if floor >= 0:
        sorter.stores.cursors.set_floor("q", floor)
    found = due(options, row(sorter))
    assert (found.after, found.lost) == (9, 19)
    assert found.problem.startswith(problem)
    assert bool(found.problem) == bool(problem)


def copied(options: ArchiveOptions, *left_out: str) -> ArchiveOptions:
    """An archive at another address, where no watermark tells of it, without some of its files."""
    copy = replace(options, storage=Storage(options.storage.uri + "-copy"))
    shutil.copytree(options.storage.uri, copy.storage.uri)
    lose(copy, *left_out)
    return copy


@pytest.mark.parametrize(
    ("gone", "after", "problem"),
    [
        ((), 19, ""),
        (("q-q/0000000000000000010.",), -1, "it is archived up to seq -1 and trimmed up to 12"),
        (("q-q/0000000000000000010.parquet",), -1, "it is archived up to seq -1 and trimmed up to 12"),
        (("q-q/0000000000000000005.",), -1, "it is archived up to seq -1 and trimmed up to 12"),
    ],
)
def test_segments_of_a_copy_without_plans_count_where_they_are_whole_up_to_what_is_trimmed(
    sorter: StreamSorter, options: ArchiveOptions, gone: tuple[str, ...], after: int, problem: str
) -> None:
    sorter.stores.cursors.set_floor("q", 12)
    found = due(copied(options, "/plans/", *gone), row(sorter))
    assert (found.after, found.began, found.lacks_watermark) == (after, -1, not problem)
    assert found.problem.startswith(problem)
    assert bool(found.problem) == bool(problem)


@pytest.mark.parametrize("kind", ["parquet", "json"])
def test_the_file_that_is_missing_is_named(sorter: StreamSorter, options: ArchiveOptions, kind: str) -> None:
    sorter.stores.cursors.set_floor("q", 12)
    lose(options, f"q-q/0000000000000000005.{kind}")
    assert f"segments up to seq 9 are missing (0000000000000000005.{kind})" in due(options, row(sorter)).problem


def test_a_copy_that_has_lost_segments_before_its_first_plan_is_damaged(
    sorter: StreamSorter, options: ArchiveOptions
) -> None:
    sorter.stores.cursors.set_floor("q", 12)
    found = due(copied(options, "/plans/0000000000000000000.", "q-q/0000000000000000005."), row(sorter))
    assert "it began at seq 0, and its first plan that is there begins at seq 10" in found.problem
    assert "begins at seq 10 where no watermark tells of them" in found.problem


@pytest.mark.parametrize("gone", ["q-q/0000000000000000010.parquet", "nothing"])
def test_segments_of_which_no_plan_is_left_are_looked_at_though_their_data_are_lost(
    sorter: StreamSorter, options: ArchiveOptions, gone: str
) -> None:
    found = due(copied(options, "/plans/", "q-q/0000000000000000000.", "q-q/0000000000000000005.", gone), row(sorter))
    assert (found.after, found.unplanned, found.problem) == (-1, True, "")


def test_an_archive_that_is_claimed_while_it_is_looked_at_is_no_strangers(options: ArchiveOptions) -> None:
    owner, storage = Owner("arn", "id"), options.storage

    class Claimed(Storage):
        def some_name(self) -> str | None:
            owner.claim(storage)
            return storage.some_name()

    owner.check(Claimed(storage.uri))
    with pytest.raises(SettingsError, match="is not that of"):
        Owner("arn", "another").check(storage)


def test_a_place_with_other_files_is_no_place_to_begin_an_archive(options: ArchiveOptions, tmp_path: Path) -> None:
    (tmp_path / "output").mkdir()
    (tmp_path / "output" / "part-0000000.parquet").write_bytes(b"")
    owner = Owner("arn", "id")
    with pytest.raises(SettingsError, match=r"output is no archive, and not empty: it holds 'part-0000000.parquet'"):
        owner.check(Storage(str(tmp_path / "output")))
    owner.check(Storage(str(tmp_path / "new")))
    # What a system hides in its folders is nobody's.
    (tmp_path / "hidden" / ".Trashes").mkdir(parents=True)
    (tmp_path / "hidden" / ".Trashes" / "1").write_bytes(b"")
    (tmp_path / "hidden" / ".DS_Store").write_bytes(b"")
    owner.check(Storage(str(tmp_path / "hidden")))
    with pytest.raises(SettingsError, match=r"does not say whose it is: owner.json is missing"):
        owner.check(options.storage)


def elsewhere(options: ArchiveOptions, cursor: Cursor) -> Due:
    (found,) = options.due_reader().known_elsewhere([due(options, cursor)])
    return found


def test_a_queue_that_was_trimmed_for_another_archive_does_not_begin_here_unnoticed(
    sorter: StreamSorter, options: ArchiveOptions, tmp_path: Path
) -> None:
    mistyped = replace(options, storage=Storage(str(tmp_path / "archiv")))
    # Nothing is trimmed: all of it can be archived anywhere.
    assert elsewhere(mistyped, row(sorter)).problem == ""
    sorter.stores.cursors.set_floor("q", 12)
    assert elsewhere(options, row(sorter)).problem == ""
    found = elsewhere(mistyped, row(sorter))
    assert found.problem.startswith(f"it is archived in {options.storage.canonical} and trimmed up to seq 12")
    assert "run once without --trim" in found.problem
    # It was meant: somebody ran without --trim.
    plan = SegmentPlan("q", 12, (19,))
    fix(mistyped.storage, plan)
    for held in plan.segments:
        write_segment(mistyped.storage, held, TableOrigin(ACCESS).read(held))
    mark_finished(mistyped.storage, plan)
    sorter.put_many(map(message, range(20, 25)))
    assert elsewhere(mistyped, row(sorter)).problem == ""


@pytest.mark.parametrize(
    ("others", "named"),
    [
        ({"/a": (9, -1), "/b": (15, -1)}, "/b"),
        ({"/a": (15, -1), "/b": (9, -1)}, "/a"),
        ({"/a": (15, None), "/b": (19, 12)}, "/a"),
        # It began behind what was trimmed, and has nothing of that.
        ({"/b": (19, 12)}, ""),
    ],
)
def test_of_several_archives_the_one_is_named_that_goes_furthest(
    sorter: StreamSorter, options: ArchiveOptions, others: dict[str, tuple[int, int | None]], named: str
) -> None:
    sorter.put_many(message(seq) | {"queue": "r"} for seq in range(20))
    sorter.stores.cursors.set_floor("r", 12)
    for address, (watermark, began) in others.items():
        replace(options, storage=Storage(address)).due_reader().marks.set_watermark("r", None, watermark, began=began)
    assert elsewhere(options, row(sorter, "r")).elsewhere == named


def test_a_queue_of_which_nothing_is_left_to_archive_begins_nowhere(
    sorter: StreamSorter, options: ArchiveOptions, tmp_path: Path
) -> None:
    sorter.stores.cursors.set_floor("q", 19)
    mistyped = replace(options, storage=Storage(str(tmp_path / "archiv")))
    assert elsewhere(mistyped, row(sorter)).problem == ""


def test_what_was_trimmed_without_an_archive_is_elsewhere_nowhere(
    sorter: StreamSorter, options: ArchiveOptions
) -> None:
    sorter.put_many(message(seq) | {"queue": "r"} for seq in range(5))
    sorter.stores.cursors.set_floor("r", 2)
    found = elsewhere(options, row(sorter, "r"))
    assert (found.problem, found.after) == ("", 2)


def test_a_damaged_checkpoint_keeps_its_own_queue_only_from_being_archived(
    client: Faulty, sorter: StreamSorter, options: ArchiveOptions
) -> None:
    sorter.put_many(map(message, range(20, 40)))
    sorter.put_many({"queue": "sound", "seq": seq} for seq in range(5))
    consumer = OrderedConsumer("billing", lambda _: None, sorter=sorter)
    for queue in ("q", "sound"):
        consumer.catch_up(queue)
    change = {"UpdateExpression": "REMOVE #it", "ExpressionAttributeNames": {"#it": "version"}}
    client.update_item(TableName="Control", Key=key_of(*place_of("billing", "q")), **change)
    report = dry_run(replace(options, trim=True, storage=Storage(options.storage.uri + "-other")))
    found = {one["queue"]: (one["rows"], one["trimmed"], one["problem"]) for one in report.queues}
    assert (found["sound"], found["q"][:2], report.complete) == ((5, 4, ""), (0, 0), False)
    assert "without version" in found["q"][2]


def test_a_queue_whose_cursor_row_cannot_be_read_is_not_left_out_of_an_archive_without_a_word(
    client: Faulty, sorter: StreamSorter, options: ArchiveOptions
) -> None:
    sorter.put_many({"queue": "sound", "seq": seq} for seq in range(5))
    client.put_item(TableName="Cursor", Item={"queue": {"S": "q"}, "seq": {"S": "none"}})
    report = dry_run(replace(options, trim=True, storage=Storage(options.storage.uri + "-other")))
    found = {one["queue"]: (one["rows"], one["position"], one["archived_through"]) for one in report.queues}
    assert (found, report.complete) == ({"q": (0, None, None), "sound": (5, 4, None)}, False)
    assert "holds a row without 'seq'" in report.queues[0]["problem"]
