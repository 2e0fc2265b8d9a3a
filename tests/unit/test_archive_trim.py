"""What of an archived queue is looked up in the archive and deleted, and what stays in the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import OrderedConsumer, StreamSorter
from stream_sort.replay.archive.trim import Bound, TrimBounds, TrimmedQueue, TrimQueues
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.access import TableAccess
from stream_sort.replay.origins.archive.segments import write_segment
from stream_sort.replay.origins.table import TableOrigin
from stream_sort.replay.ranges import Part, Range
from stream_sort.stores.dynamodb.control_rows import key_of, place_of
from tests.unit.faulty import Faulty, message

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

ACCESS = TableAccess("Items", "Cursor", region="eu-west-1")
TOMBSTONES = range(10, 30)


@pytest.fixture
def sorter(client: Faulty, monkeypatch: pytest.MonkeyPatch) -> StreamSorter:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "y")
    sorter = StreamSorter(client=client)
    sorter.stores.control("Control").create_table()
    sorter.put_many(message(seq) for seq in range(60) if seq not in TOMBSTONES)
    sorter.skip("q", TOMBSTONES)
    return sorter


@pytest.fixture
def trim(sorter: StreamSorter, tmp_path: Path) -> TrimQueues:
    storage = Storage(str(tmp_path / "archive"))
    sorter.put(late(10))
    for held in (Range("q", -1, 19), Range("q", 19, 59)):
        write_segment(storage, held, TableOrigin(ACCESS).read(held))
    return TrimQueues(ACCESS, "Control", storage)


def late(seq: int) -> dict[str, Any]:
    return message(seq, text="late", raw=b"\xff", size=1.5)


def bound(sorter: StreamSorter, through: int, began: int = -1) -> Bound:
    cursor = sorter.stores.cursors.get("q")
    assert cursor is not None
    (found,) = TrimBounds(ACCESS, sorter.stores.control("Control")).of([(cursor, Range("q", began, through))])
    return found


def due(sorter: StreamSorter, through: int, began: int = -1) -> list[Range]:
    return list(bound(sorter, through, began).ranges)


def done(trim: TrimQueues, ranges: Iterable[Range]) -> list[TrimmedQueue]:
    return trim(Part(0, tuple(ranges)))


def test_what_was_kept_is_looked_up_by_itself_and_not_with_all_that_follows(
    sorter: StreamSorter, trim: TrimQueues
) -> None:
    assert due(sorter, 39) == [Range("q", -1, 39)]
    assert (bound(sorter, 39).slots, bound(sorter, 59).slots) == (40, 59)
    sorter.put(late(11))
    sorter.put(late(20))
    assert done(trim, due(sorter, 39)) == [TrimmedQueue("q", 38, (11, 20))]
    kept = [Range("q", 10, 11), Range("q", 19, 20)]
    assert due(sorter, 39) == kept
    assert due(sorter, 59) == [*kept, Range("q", 39, 59)]
    # Those that were kept, and up to the one at the position.
    assert (bound(sorter, 39).slots, bound(sorter, 59).slots) == (2, 2 + 19)
    assert done(trim, due(sorter, 59)) == [
        TrimmedQueue("q", 0, (11,)),
        TrimmedQueue("q", 0, (20,)),
        TrimmedQueue("q", 19),
    ]
    assert sorter.stores.items.look("q", -1, 99).seqs == (11, 20, 59)
    assert due(sorter, 59) == kept


def test_many_that_were_kept_are_looked_up_together(sorter: StreamSorter, trim: TrimQueues) -> None:
    sorter.put_many(map(late, TOMBSTONES))
    assert done(trim, due(sorter, 39)) == [TrimmedQueue("q", 21, tuple(TOMBSTONES)[1:])]
    assert due(sorter, 39) == [Range("q", 10, 39)]
    assert due(sorter, 59) == [Range("q", 10, 59)]


def test_what_a_trim_has_left_that_died_is_deleted_however_much_it_is(
    sorter: StreamSorter, trim: TrimQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stream_sort.replay.archive.trim.PAGE", 12)
    sorter.stores.cursors.set_floor("q", 49)
    assert done(trim, due(sorter, 59)) == [TrimmedQueue("q", 59)]


def test_what_is_stored_below_where_the_archive_began_is_left_alone(
    sorter: StreamSorter, trim: TrimQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stream_sort.replay.archive.trim.PAGE", 3)
    sorter.stores.cursors.set_floor("q", 19)
    assert due(sorter, 59, began=19) == [Range("q", 19, 59)]
    assert done(trim, due(sorter, 59, began=19)) == [TrimmedQueue("q", 39)]
    assert sorter.stores.items.look("q", -1, 99).seqs == (*range(20), 59)
    assert due(sorter, 59, began=19) == []


def test_a_late_message_that_is_another_in_the_archive_is_kept(
    client: Faulty, sorter: StreamSorter, trim: TrimQueues
) -> None:
    key = {"queue": {"S": "q"}, "seq": {"N": "10"}}
    change = {
        "UpdateExpression": "SET #late.#raw = :raw",
        "ExpressionAttributeNames": {"#late": "_ss_late", "#raw": "raw"},
    }
    client.update_item(TableName="Items", Key=key, ExpressionAttributeValues={":raw": {"B": b"\xfe"}}, **change)
    assert done(trim, due(sorter, 39)) == [TrimmedQueue("q", 39, (10,))]


def change(client: Faulty, seq: int, **wire: Any) -> None:
    """Another item in the place of one that is archived."""
    client.put_item(TableName="Items", Item={"queue": {"S": "q"}, "seq": {"N": str(seq)}, **wire})


OTHERS = [
    (35, {"text": {"S": "another"}, "_ss_at": {"N": "1"}}, "their contents differ"),
    (35, {"text": {"S": "another"}}, "their contents differ"),
    (35, {"_ss_skipped": {"S": "x"}}, "it is a tombstone, and the archive has a message"),
    (15, {"text": {"S": "another"}}, "it is a message, and the archive has a tombstone"),
    (15, {"_ss_skipped": {"S": "x"}}, "it was skipped for another reason"),
]


@pytest.mark.parametrize("other", OTHERS)
def test_nothing_is_deleted_from_a_slot_on_that_is_not_what_is_archived(
    client: Faulty, sorter: StreamSorter, trim: TrimQueues, other: tuple[int, dict[str, Any], str]
) -> None:
    seq, wire, told = other
    change(client, seq, **wire)
    (answer,) = done(trim, due(sorter, 59))
    assert (answer.slots, answer.kept) == (seq, ())
    assert answer.problem.startswith(f"seq {seq} in the table is not the message that is archived ({told})")
    assert "begin another archive" in answer.problem
    assert sorter.stores.items.look("q", -1, 99).seqs == tuple(range(seq, 60))
    assert due(sorter, 59) == [Range("q", seq - 1, 59)]


@pytest.mark.parametrize("seq", [0, 25, 35])
def test_a_message_that_takes_an_empty_slot_after_all_was_compared_is_not_deleted(
    client: Faulty, sorter: StreamSorter, trim: TrimQueues, monkeypatch: pytest.MonkeyPatch, seq: int
) -> None:
    sorter.stores.items.delete("q", seq - 1, seq, 1)
    delete = TrimQueues._delete

    def overtaken(*given: Any) -> TrimmedQueue:
        change(client, seq, text={"S": "another"})
        return delete(*given)

    monkeypatch.setattr(TrimQueues, "_delete", overtaken)
    assert done(trim, [Range("q", -1, 59)]) == [TrimmedQueue("q", 58)]
    assert sorter.stores.items.look("q", -1, 99).seqs == (seq, 59)


def test_a_message_that_came_again_or_without_a_time_is_what_is_archived(
    client: Faulty, sorter: StreamSorter, trim: TrimQueues
) -> None:
    change(client, 35, _ss_at={"N": "1"})
    change(client, 36)
    assert done(trim, due(sorter, 59)) == [TrimmedQueue("q", 59)]


def test_a_kept_slot_that_is_not_what_is_archived_holds_up_its_queue_only(
    client: Faulty, sorter: StreamSorter, trim: TrimQueues
) -> None:
    sorter.stores.cursors.set_floor("q", 19)
    for after, through in ((-1, 11), (12, 16), (17, 19)):
        sorter.stores.items.delete("q", after, through, 99)
    change(client, 17, text={"S": "another"})
    sorter.put({"queue": "other", "seq": 0})
    write_segment(trim.storage, Range("other", -1, 0), TableOrigin(ACCESS).read(Range("other", -1, 0)))
    answers = done(trim, [*due(sorter, 59), Range("other", -1, 0)])
    assert [(one.queue, one.slots, bool(one.problem)) for one in answers] == [
        ("q", 1, False),
        ("q", 0, True),
        ("other", 0, False),
    ]
    assert sorter.stores.items.look("q", -1, 99).seqs == (17, *range(20, 60))


def test_a_damaged_dead_letter_keeps_its_own_queue_only_from_being_trimmed(
    client: Faulty, sorter: StreamSorter
) -> None:
    sorter.put_many({"queue": "sound", "seq": seq} for seq in range(5))
    OrderedConsumer("billing", lambda _: None, sorter=sorter).catch_up("q")
    client.put_item(TableName="Control", Item=key_of(*place_of("billing", "q", 3)))
    cursors = [cursor for queue in ("q", "sound") if (cursor := sorter.stores.cursors.get(queue)) is not None]
    bounds = TrimBounds(ACCESS, sorter.stores.control("Control"))
    damaged, sound = bounds.of([(cursor, Range(cursor.queue, -1, 4)) for cursor in cursors])
    assert (sound.slots, sound.problem) == (4, "")
    assert (damaged.slots, damaged.ranges) == (0, ())
    assert "the control table holds a row without" in damaged.problem
