"""What is stored is compared with what is archived, however both come in pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from stream_sort.replay.origins.archive.difference import Difference, first_difference
from stream_sort.replay.ranges import Range
from stream_sort.replay.slots import SLOTS
from tests.unit.slot_rows import rows_of, slots

if TYPE_CHECKING:
    from collections.abc import Iterable

HELD = Range("q", -1, 39)
SKIPPED = (3, 21)


def pages(rows: Iterable[dict[str, Any]], size: int) -> list[pa.RecordBatch]:
    held = list(rows)
    cut = (held[start : start + size] for start in range(0, len(held), size))
    return [pa.RecordBatch.from_pylist(page, schema=SLOTS) for page in cut]


def row(seq: int, **changes: Any) -> dict[str, Any]:
    return {**rows_of(slots(HELD, SKIPPED))[seq], **changes}


def differs(stored: Iterable[dict[str, Any]], size: int = 7) -> int | None:
    found = first_difference(pages(stored, size), slots(HELD, SKIPPED, batch_rows=11))
    return None if found is None else found.seq


@pytest.mark.parametrize("size", [1, 4, 11, 100])
def test_the_first_slot_that_differs_is_found_however_pages_are_cut(size: int) -> None:
    seqs = [seq for seq in range(40) if seq not in {0, 1, 12, *range(15, 30)}]
    assert differs(map(row, seqs), size) is None
    for seq in seqs:
        changed = {"skipped": "for another reason"} if seq in SKIPPED else {"item": '{"queue":"q","seq":0}'}
        assert differs((row(one, **(changed if one in {seq, 39} else {})) for one in seqs), size) == seq


def test_what_was_deleted_is_no_difference() -> None:
    assert differs([]) is None
    assert differs([row(39)]) is None
    assert first_difference(pages([], 1), []) is None


def test_what_is_not_archived_differs() -> None:
    found = first_difference(pages(map(row, range(40)), 7), slots(Range("q", -1, 29), SKIPPED))
    assert found is not None
    assert (found.seq, found.told) == (30, "it is not in the archive")


def test_what_is_missing_inside_the_archive_differs() -> None:
    archived = [*slots(Range("q", -1, 9), SKIPPED), *slots(Range("q", 19, 39), SKIPPED)]
    for seqs in (range(40), range(5, 30), range(10, 12)):
        found = first_difference(pages(map(row, seqs), 7), archived)
        assert found == Difference(10, "it is not in the archive")


def test_the_same_value_in_another_text_is_the_same() -> None:
    archived = pages([row(0, item='{"n":1e2,"raw":"AA==","seq":0}', binary='[["raw"]]')], 1)
    for item, binary, told in (
        ('{"seq":0, "raw":"AA==", "n":100.0}', '[["raw"]]', None),
        ('{"n":1e2,"raw":"AA==","seq":0}', None, "their contents differ"),
        ('{"n":100,"raw":"AA==","seq":0}', '[["raw"]]', "their contents differ"),
    ):
        found = first_difference(pages([row(0, item=item, binary=binary)], 1), archived)
        assert (found and found.told) == told


@pytest.mark.parametrize(
    ("stored", "archived", "same"),
    [
        ("12345678901234567.89", "12345678901234567.88", False),
        ("0.12345678901234567890123456789", "0.12345678901234567890123456788", False),
        ("1.0", "1.00", True),
        ("1.50", "15e-1", True),
        ("0.0", "-0.0", False),
        ("1", "1.0", False),
        ("12345678901234567.89", "12345678901234567.890", True),
        # Put back from the archive: a float is what its readers get.
        ("1.2345678901234568e+16", "12345678901234567.89", True),
        ("12345678901234567.89", "1.2345678901234568e+16", False),
    ],
)
def test_numbers_are_compared_digit_by_digit(stored: str, archived: str, same: bool) -> None:  # noqa: FBT001
    sides = [pages([row(0, item=f'{{"in":[{{"n":{number}}}],"seq":0}}')], 1) for number in (stored, archived)]
    assert (first_difference(*sides) is None) == same


def test_a_difference_names_what_may_be_its_cause_and_what_to_do() -> None:
    told = Difference(3, "their contents differ").problem
    for part in (
        "restored to an earlier time",
        "begin another archive",
        "another archive's",
        "put the right ones back",
    ):
        assert part in told


def test_late_messages_and_arrivals_are_not_compared() -> None:
    assert differs([row(3, late="{}", binary='[["raw"]]'), row(4, arrived_at=None), row(5, arrived_at=1)]) is None
