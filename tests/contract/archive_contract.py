"""ArchiveMarks' guarantees as tests, one a number. Subclass it, give it a `marks` fixture, and run pytest.

`others` are the marks of other archives of the same tables, by their addresses.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from stream_sort.ports.archive import Archived

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stream_sort.ports.archive import ArchiveMarks

LOWEST, HIGHEST = -(2**62), 2**63 - 1


class ArchiveMarksContract:
    """The guarantees of every ArchiveMarks."""

    def test_1_a_watermark_reads_as_it_was_set(self, marks: ArchiveMarks) -> None:
        assert marks.watermark("q") is None
        for queue, seq in (("q", 4), ("low", LOWEST), ("high", HIGHEST), ("a*b 🦄", 0)):
            assert marks.set_watermark(queue, None, seq)
            assert marks.watermark(queue) == seq

    def test_2_many_watermarks_are_those_that_exist(self, marks: ArchiveMarks) -> None:
        names = [f"queue {number}" for number in range(230)]
        for number, name in enumerate(names[::2]):
            marks.set_watermark(name, None, number)
        assert marks.archived(names) == {name: Archived(number) for number, name in enumerate(names[::2])}
        assert marks.archived([]) == {}

    def test_3_a_watermark_moves_from_where_it_stands_only(self, marks: ArchiveMarks) -> None:
        assert not marks.set_watermark("q", 3, 9)
        assert marks.watermark("q") is None
        assert marks.set_watermark("q", None, 4)
        assert not marks.set_watermark("q", None, 9)
        assert not marks.set_watermark("q", 3, 9)
        assert marks.watermark("q") == 4
        assert marks.set_watermark("q", 4, 9)
        assert marks.watermark("q") == 9

    def test_3_a_watermark_never_goes_back(self, marks: ArchiveMarks) -> None:
        marks.set_watermark("q", None, 9)
        assert not marks.set_watermark("q", 9, 4)
        assert marks.watermark("q") == 9

    def test_3_setting_what_is_set_succeeds_as_a_repeated_request_must(self, marks: ArchiveMarks) -> None:
        marks.set_watermark("q", None, 4)
        assert marks.set_watermark("q", None, 4)
        assert marks.set_watermark("q", 2, 4)
        assert marks.watermark("q") == 4

    def test_3_of_several_that_move_at_once_one_wins(self, marks: ArchiveMarks) -> None:
        marks.set_watermark("q", None, 0)
        with ThreadPoolExecutor(4) as pool:
            won = list(pool.map(lambda seq: marks.set_watermark("q", 0, seq), [1, 2, 3, 4]))
        assert won.count(True) == 1
        assert marks.watermark("q") == [1, 2, 3, 4][won.index(True)]

    def test_4_queues_do_not_touch_each_other(self, marks: ArchiveMarks) -> None:
        marks.set_watermark("q", None, 4)
        marks.set_watermark("q#", None, 5)
        marks.set_watermark("#q", None, 6)
        assert marks.archived(["q", "q#", "#q"]) == {"q": Archived(4), "q#": Archived(5), "#q": Archived(6)}

    def test_5_where_the_archive_began_stands_with_the_watermark(self, marks: ArchiveMarks) -> None:
        for queue, began in (("q", -1), ("low", LOWEST), ("high", HIGHEST - 1)):
            assert marks.set_watermark(queue, None, HIGHEST, began=began)
            assert marks.archived([queue]) == {queue: Archived(HIGHEST, began)}
            assert marks.watermark(queue) == HIGHEST

    def test_5_a_move_says_again_where_the_archive_began(self, marks: ArchiveMarks) -> None:
        marks.set_watermark("q", None, 4, began=-1)
        assert marks.set_watermark("q", 4, 9, began=-1)
        assert marks.archived(["q"]) == {"q": Archived(9, -1)}
        assert marks.set_watermark("q", 9, 12)
        assert marks.archived(["q"]) == {"q": Archived(12)}

    def test_5_a_move_that_is_refused_says_nothing(self, marks: ArchiveMarks) -> None:
        marks.set_watermark("q", None, 4, began=-1)
        assert not marks.set_watermark("q", 3, 9, began=2)
        assert marks.set_watermark("q", None, 4, began=2)
        assert marks.archived(["q"]) == {"q": Archived(4, -1)}

    def test_6_other_archives_of_a_queue_are_named(
        self, marks: ArchiveMarks, others: Mapping[str, ArchiveMarks]
    ) -> None:
        marks.set_watermark("q", None, 4)
        marks.set_watermark("r", None, 4)
        assert marks.elsewhere("q") == {}
        for number, other in enumerate(others.values()):
            other.set_watermark("q", None, number, began=number - 1)
        expected = {address: Archived(number, number - 1) for number, address in enumerate(others)}
        assert marks.elsewhere("q") == expected
        assert marks.elsewhere("r") == {}
