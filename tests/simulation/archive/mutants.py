"""Known-bad variants of the job, and one of the audit: each makes one plausible mistake, and the oracle must say so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stream_sort.replay.archive import due, job, work
from stream_sort.replay.archive.trim import TrimQueues
from stream_sort.replay.audit import archive_survey as audit
from stream_sort.replay.origins.archive import segments
from stream_sort.replay.origins.archive.plan import fix, mark_finished

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow as pa
    import pytest

    from stream_sort.model.records import Cursor
    from stream_sort.ports.archive import Archived
    from stream_sort.replay.archive.due import Due
    from stream_sort.replay.archive.trim import TrimmedQueue
    from stream_sort.replay.files.storage import Storage
    from stream_sort.replay.origins.archive.folder_state import Damage, FolderState
    from stream_sort.replay.origins.archive.manifest import Manifest
    from stream_sort.replay.origins.archive.plan import SegmentPlan
    from stream_sort.replay.origins.table import TableOrigin
    from stream_sort.replay.ranges import Range


@dataclass(frozen=True, slots=True)
class Mutant:
    """A mistake, and how it gets into the job."""

    name: str
    summary: str
    install: Callable[[pytest.MonkeyPatch], None]


def _as_it_ships(patch: pytest.MonkeyPatch) -> None:
    """No mistake."""
    del patch


def _finished_first(patch: pytest.MonkeyPatch) -> None:
    def fix_and_mark(storage: Storage, plan: SegmentPlan) -> tuple[SegmentPlan, bool]:
        found, is_new = fix(storage, plan)
        mark_finished(storage, found)
        return found, is_new

    patch.setattr(job, "fix", fix_and_mark)


def _watermark_first(patch: pytest.MonkeyPatch) -> None:
    fix_of_run = job._Run._fix

    def fix_and_move(run: job._Run, wanted: Range) -> tuple[SegmentPlan, list[Range]] | None:
        found = fix_of_run(run, wanted)
        if found is not None:
            mark = run.accounts.queues[wanted.queue].due.mark
            old = None if mark is None else mark.watermark
            run._due_reader.marks.set_watermark(wanted.queue, old, found[0].through, began=wanted.after)
        return found

    patch.setattr(job._Run, "_fix", fix_and_move)


def _planned_anew(patch: pytest.MonkeyPatch) -> None:
    def write(storage: Storage, plan: SegmentPlan) -> tuple[SegmentPlan, bool]:
        storage.write(plan.name, plan.text())
        return plan, True

    patch.setattr(job, "fix", write)


def _planned_across(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(job, "unplanned", lambda *_: [])


def _manifest_first(patch: pytest.MonkeyPatch) -> None:
    def write_segment(storage: Storage, held: Range, batches: Iterable[pa.RecordBatch]) -> Manifest:
        manifest, data = segments._made(held, batches)
        storage.write(manifest.name, manifest.text())
        storage.put_if_absent(manifest.data_name, data)
        return manifest

    patch.setattr(work, "write_segment", write_segment)


def _unasked_trim(patch: pytest.MonkeyPatch) -> None:
    def trim(queues: TrimQueues, held: Range, table: TableOrigin) -> TrimmedQueue:
        del table
        return queues._delete(held, [range(held.after + 1, held.through + 1)])

    patch.setattr(TrimQueues, "_trim", trim)


def _unknown_beginning(patch: pytest.MonkeyPatch) -> None:
    began = due._began

    def began_by_watermark(cursor: Cursor, mark: Archived | None, held: Sequence[int]) -> int | None:
        return None if mark is None else began(cursor, mark, held)

    patch.setattr(due, "_began", began_by_watermark)


def _believed_watermark(patch: pytest.MonkeyPatch) -> None:
    archived = due._archived

    def by_watermark(one: Due, state: FolderState, damage: Damage | None) -> tuple[int, int | None]:
        return archived(one, state, damage) if one.mark is None else (one.mark.watermark, None)

    patch.setattr(due, "_archived", by_watermark)


def _left_unmarked(patch: pytest.MonkeyPatch) -> None:
    move_watermark = job._Run._move_watermark

    def move_only(run: job._Run, plan: SegmentPlan) -> None:
        with patch.context() as inner:
            inner.setattr(job, "mark_finished", lambda *_: None)
            move_watermark(run, plan)

    patch.setattr(job._Run, "_move_watermark", move_only)


def _unpromised(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(audit, "_unkept", lambda *_: ())


PRODUCTION = Mutant("", "the job as it ships", _as_it_ships)
MUTANTS = {
    mutant.name: mutant
    for mutant in (
        Mutant("finished-first", "a plan is marked as finished before its segments are written", _finished_first),
        Mutant("watermark-first", "the watermark is moved before the segments are written", _watermark_first),
        Mutant("manifest-first", "a manifest is written before its segment", _manifest_first),
        Mutant("left-unmarked", "the next run is left to mark what is finished", _left_unmarked),
        Mutant("planned-anew", "a run puts its own plan in the place of one that it finds", _planned_anew),
        Mutant("planned-across", "a plan does not go along segments whose plan was lost", _planned_across),
        Mutant("believed-watermark", "a run goes on behind the watermark, whatever is there", _believed_watermark),
        Mutant("unknown-beginning", "without a watermark, nobody knows where an archive began", _unknown_beginning),
        Mutant("unasked-trim", "a trim does not look at what is in the archive", _unasked_trim),
        Mutant("unpromised", "an audit does not ask what the watermark promises", _unpromised),
    )
}
