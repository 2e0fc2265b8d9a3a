"""What readers of an archive compare with its marks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stream_sort.errors import ArchiveDamaged
from stream_sort.replay.audit.archive_survey import ArchiveSurvey
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.archive.origin import ArchiveOrigin
from stream_sort.replay.origins.archive.plan import SegmentPlan, fix, mark_finished
from stream_sort.replay.origins.archive.segments import write_segment
from stream_sort.replay.ranges import Range
from tests.unit.slot_rows import slots

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("ends", [(9, 19), (9, 19, 29)])
def test_a_last_segment_that_ends_before_its_mark_is_damage(
    tmp_path: Path, ends: tuple[int, ...], *, marked: bool
) -> None:
    storage, plan = Storage(str(tmp_path)), SegmentPlan("q", -1, ends)
    fix(storage, plan)
    for held in plan.segments:
        write_segment(storage, held, slots(held))
    if marked:
        mark_finished(storage, plan)
    assert ArchiveOrigin(storage).ranges() == [Range("q", -1, ends[-1])]
    short = Range("q", ends[-2], ends[-1] - 3)
    write_segment(storage, short, slots(short))
    told = f"it ends at seq {ends[-1] - 3}, and the mark of its plan says {ends[-1]}: it is another segment"
    with pytest.raises(ArchiveDamaged, match=told):
        ArchiveOrigin(storage).ranges()
    survey = ArchiveSurvey(storage, None, None)
    survey._load()
    assert [(one.queue, told in one.problem) for one in survey.damaged] == [("q", True)]
