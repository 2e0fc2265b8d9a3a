"""What a run of the archive says of queues of which it holds nothing, or not all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stream_sort.model.records import Cursor
from stream_sort.ports.archive import Archived
from stream_sort.replay.archive.due import Due
from stream_sort.replay.archive.report import Accounts
from stream_sort.replay.engine.plan import ReadEstimate
from stream_sort.replay.origins.archive.folder_state import FolderState

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.replay.engine.report import JobReport


def done(due: Due) -> JobReport:
    return Accounts.of([due]).report(1.0, trimmed=False)


def asked(due: Due) -> JobReport:
    return Accounts.of([due]).report(trimmed=False, cost=ReadEstimate(None, None))


def row(queue: str = "q", *, position: int, first_seq: int = 0, floor: int | None = None) -> Cursor:
    return Cursor(queue, position, first_seq=first_seq, floor=floor)


@pytest.mark.parametrize("report", [done, asked])
def test_what_was_trimmed_before_it_could_be_archived_is_not_called_archived(
    report: Callable[[Due], JobReport],
) -> None:
    told = report(Due(row(position=3, floor=3), after=3, consumed=3))
    assert told.complete
    assert told.queues[0]["archived_through"] is None
    assert (
        "queue 'q': nothing is archived; seqs 0 to 3 (4) were trimmed before and are in no segment of this archive"
        in told.notes
    )


@pytest.mark.parametrize("report", [done, asked])
def test_an_archive_that_begins_behind_a_trim_says_so(report: Callable[[Due], JobReport]) -> None:
    due = Due(
        row(position=19, first_seq=5, floor=5),
        after=19,
        consumed=19,
        mark=Archived(19, 5),
        state=FolderState((6,), (), ()),
    )
    told = report(due)
    assert told.queues[0]["archived_through"] == 19
    assert (
        "queue 'q': the archive begins at seq 6; seq 5 was trimmed before and is in no segment of this archive"
        in told.notes
    )


@pytest.mark.parametrize("report", [done, asked])
def test_what_was_archived_before_it_was_trimmed_needs_no_note(report: Callable[[Due], JobReport]) -> None:
    told = report(
        Due(row(position=19, floor=10), after=19, consumed=19, mark=Archived(19, -1), state=FolderState((0,), (), ()))
    )
    assert told.queues[0]["archived_through"] == 19
    assert not any("segment" in note for note in told.notes)


@pytest.mark.parametrize("report", [done, asked])
def test_a_queue_of_which_nothing_is_archived_yet_is_archived_through_no_seq(
    report: Callable[[Due], JobReport],
) -> None:
    told = report(Due(row(position=9), after=-1, consumed=-1, held_by="billing"))
    assert told.queues[0]["archived_through"] is None
    assert not any("segment" in note for note in told.notes)


def test_of_many_queues_that_were_trimmed_before_a_few_are_named() -> None:
    dues = [Due(row(f"q{number}", position=3, floor=3), after=3, consumed=3) for number in range(8)]
    notes = Accounts.of(dues).report(1.0, trimmed=False).notes
    assert len([note for note in notes if "nothing is archived" in note]) == 5
    assert notes[-1] == "and 3 more queues that were trimmed before"


def test_a_dry_run_ends_with_a_forecast() -> None:
    due = Due(row(position=9), after=-1, consumed=9)
    assert asked(due).text().splitlines()[-1] == "archive: a run would be complete, as far as is known now"
    gone = Due(row(position=9, floor=5), after=2, consumed=9, mark=Archived(2, -1), state=FolderState((0,), (), ()))
    assert asked(gone).text().splitlines()[-1] == "archive: a run would NOT be complete"
    assert done(due).text().splitlines()[-1] == "archive: complete (1.0 s)"
