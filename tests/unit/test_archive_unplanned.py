"""Where a plan was lost and its segments are there, a new one goes along them, or is refused before it is written."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from stream_sort.errors import ArchiveDamaged
from stream_sort.replay.archive.work import unplanned
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.archive.folders import FolderReader
from stream_sort.replay.origins.archive.manifest import folder_of
from stream_sort.replay.origins.archive.plan import SegmentPlan, fix, is_written, mark_finished
from stream_sort.replay.origins.archive.segments import write_segment
from stream_sort.replay.ranges import Range
from tests.unit.slot_rows import slots

if TYPE_CHECKING:
    from pathlib import Path

    from stream_sort.replay.origins.archive.folder_state import FolderState


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(str(tmp_path / "archive"))


def write(storage: Storage, *bounds: tuple[int, int]) -> list[Range]:
    held = [Range("q", after, through) for after, through in bounds]
    for one in held:
        write_segment(storage, one, slots(one))
    return held


def test_a_plan_goes_along_segments_and_fills_what_is_between_and_behind() -> None:
    due = Range("q", -1, 59)
    assert SegmentPlan.along(due, [], 25) == SegmentPlan.of(due, 25) == SegmentPlan("q", -1, (24, 49, 59))
    there = [Range("q", -1, 9), Range("q", 9, 39)]
    assert SegmentPlan.along(due, there, 15).ends == (9, 39, 54, 59)
    assert SegmentPlan.along(due, [Range("q", 20, 30)], 15).ends == (14, 20, 30, 45, 59)
    # What was archived goes further than what is due now.
    assert SegmentPlan.along(Range("q", -1, 20), there, 15).ends == (9, 39)
    # A segment that has to be written again begins where its file does.
    assert SegmentPlan.along(due, [Range("q", -1, 9), Range("q", 20, 20)], 25).ends == (9, 20, 45, 59)


def test_segments_without_a_plan_are_found_by_their_manifests(storage: Storage) -> None:
    held = write(storage, (-1, 9), (9, 19), (19, 24), (30, 34))
    assert unplanned(storage, Range("q", -1, 40), None, 40) == held
    assert unplanned(storage, Range("q", 9, 15), None, 40) == held[1:]
    assert unplanned(storage, Range("q", 9, 29), 29, 40) == held[1:3]
    assert unplanned(storage, Range("q", 34, 40), None, 40) == []
    fix(storage, SegmentPlan("q", 9, (19,)))
    assert unplanned(storage, Range("q", 9, 15), None, 40) == []


def test_a_manifest_that_cannot_be_read_only_tells_where_it_begins(storage: Storage) -> None:
    held = write(storage, (-1, 9), (9, 19))
    storage.write("queues/q-q/0000000000000000010.json", b"{")
    assert unplanned(storage, Range("q", -1, 40), None, 40) == [held[0], Range("q", 9, 9)]
    assert unplanned(storage, Range("q", 9, 40), None, 40) == [Range("q", 9, 9)]


@pytest.mark.parametrize(
    ("bounds", "told"),
    [
        ([(9, 19), (14, 24)], "seqs 15 to 24, others go on to 19.* Nothing from seq 10 on was trimmed.* delete all"),
        ([(9, 29), (29, 45)], "seqs 30 to 45, nothing may go beyond 40.* Nothing from seq 10 on was trimmed"),
        ([(49, 59)], "seqs 50 to 59, nothing may go beyond 40"),
        ([(4, 14)], "goes on to seq 14, and no plan goes beyond 9.* begin another archive"),
    ],
)
def test_segments_that_no_plan_can_go_along_are_damage(
    storage: Storage, bounds: list[tuple[int, int]], told: str
) -> None:
    write(storage, *bounds)
    with pytest.raises(ArchiveDamaged, match=told):
        unplanned(storage, Range("q", 9, 40), None, 40)


@pytest.fixture
def middle_lost(storage: Storage) -> Storage:
    """Three plans with all their segments, of which the one in the middle is lost, and its mark."""
    for plan in (SegmentPlan("q", -1, (9,)), SegmentPlan("q", 19, (29,))):
        fix(storage, plan)
        mark_finished(storage, plan)
    write(storage, (-1, 9), (9, 14), (14, 19), (19, 29))
    return storage


def looked(storage: Storage) -> FolderState:
    names = storage.list(folder_of("q"))
    return FolderReader(storage.read, partial(is_written, storage)).look(folder_of("q"), names)


def test_a_plan_that_was_lost_between_others_is_made_again_from_its_segments(middle_lost: Storage) -> None:
    state = looked(middle_lost)
    assert (state.damage(), state.end, state.unmarked) == (None, 29, (SegmentPlan("q", 9, (14, 19)),))


@pytest.mark.parametrize("content", [b"{", None])
@pytest.mark.parametrize(
    "name", ["0000000000000000010.json", "0000000000000000015.json", "0000000000000000015.parquet"]
)
def test_a_plan_is_not_made_again_where_its_segments_are_not_whole(
    middle_lost: Storage, name: str, content: bytes | None
) -> None:
    middle_lost.delete(folder_of("q") + name)
    if content is not None:
        middle_lost.write(folder_of("q") + name, content)
    damage = looked(middle_lost).damage()
    assert damage is not None
    assert (damage.after, damage.planned) == (9, False)
    assert "Where nothing from seq 10 on was trimmed, all files" in damage.problem


def test_a_plan_is_not_made_again_along_segments_that_overlap(middle_lost: Storage) -> None:
    write(middle_lost, (12, 19))
    assert looked(middle_lost).damage() is not None
