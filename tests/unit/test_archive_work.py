"""What becomes of a segment whose slots are gone before they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from stream_sort.replay.archive.work import WriteSegments
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.archive.segments import write_segment
from stream_sort.replay.ranges import Part, Range
from tests.unit.slot_rows import slots

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa

HELD = Range("q", -1, 39)


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(str(tmp_path / "archive"))


@dataclass
class Overtaken:
    """Reads a range of which, but for its beginning, all was archived up to `through` and trimmed meanwhile."""

    storage: Storage
    through: int | None
    damaged: str = ""

    def read(self, wanted: Range) -> Iterator[pa.RecordBatch]:
        pages = slots(wanted)
        yield pages[0]
        if self.through is not None:
            held = Range(wanted.queue, wanted.after, self.through)
            manifest = write_segment(self.storage, held, slots(held, skipped=[3]))
            if self.damaged:
                self.storage.write(manifest.data_name, bytes(manifest.size))


def test_what_somebody_else_archived_and_trimmed_meanwhile_is_archived(storage: Storage) -> None:
    (answer,) = WriteSegments(Overtaken(storage, 39), storage)(Part(0, (HELD,)))
    assert (answer.problem, answer.tombstones) == ("", 1)
    assert answer.size > 0


@pytest.mark.parametrize(("through", "damaged"), [(None, ""), (19, ""), (39, "damaged")])
def test_a_hole_in_what_nobody_has_archived_is_a_problem(storage: Storage, through: int | None, damaged: str) -> None:
    (answer,) = WriteSegments(Overtaken(storage, through, damaged), storage)(Part(0, (HELD,)))
    assert "7 to 39" in answer.problem
