"""What a stream notes as its offsets, driven as Spark does it: it asks for the initial offset twice."""

from __future__ import annotations

import json
import random
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from stream_sort.errors import Trimmed
from stream_sort.replay.slots import MESSAGES
from stream_sort.replay.source.format import Reading
from stream_sort.replay.source.options import source_options
from stream_sort.replay.source.positions import packed, unpacked
from stream_sort.replay.source.stream import PositionStream
from tests.spark.reading import options_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.streaming.datasource import ReadLimit

    from stream_sort import StreamSorter
    from stream_sort.replay.origins.access import TableAccess

Rows = list[tuple[str, int]]
Listing = dict[str, Any]


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any will do for the local AWS."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


@dataclass
class Query:
    """A streaming query and its checkpoint: the offsets that it noted, the last of which may not be done."""

    access: TableAccess
    options: dict[str, str] = field(default_factory=dict)
    offsets: list[dict[str, Any]] = field(default_factory=list)
    done: int = 0

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        options = source_options({**options_of(self.access), **self.options})
        self.stream = PositionStream(Reading(options, MESSAGES))

    def plan(self, limit: ReadLimit) -> bool:
        """Note the next offset, if it is a new one."""
        start = self.offsets[-1] if self.offsets else self.stream.initialOffset()
        end = json.loads(json.dumps(self.stream.latestOffset(start, limit)))
        is_new = not self.offsets or end != start
        self.offsets += [end] if is_new else []
        return is_new

    def read(self) -> Rows:
        """The rows of the micro-batch that was noted last, which is done then."""
        start = self.offsets[-2] if len(self.offsets) > 1 else self.stream.initialOffset()
        self.done = len(self.offsets)
        batches = [
            batch for part in self.stream.partitions(start, self.offsets[-1]) for batch in self.stream.read(part)
        ]
        return [(row["queue"], row["seq"]) for batch in batches for row in batch.to_pylist()]

    def catch_up(self, limit: ReadLimit | None = None) -> Rows:
        """Restart, do again what was not done, then all there is."""
        self.restart()
        rows = self.read() if self.done < len(self.offsets) else []
        while self.plan(limit or ReadAllAvailable()):
            rows += self.read()
        return rows


def put(sorter: StreamSorter, queue: str, *seqs: int) -> None:
    sorter.put_many([{"queue": queue, "seq": seq} for seq in seqs])


def seqs_of(queue: str, *seqs: int) -> Rows:
    return [(queue, seq) for seq in seqs]


def latest(access: TableAccess) -> Query:
    return Query(access, {"startingPosition": "latest"})


@pytest.mark.parametrize("first", [-5, 0, 1000])
@pytest.mark.parametrize("has_offset", [False, True])
def test_latest_gives_all_of_a_queue_that_had_not_begun_wherever_it_is_opened(
    access: TableAccess, sorter: StreamSorter, first: int, *, has_offset: bool
) -> None:
    put(sorter, "live", 0)
    sorter.set_policy("w", skip_after=99_999)
    query = latest(access)
    if has_offset:
        assert query.catch_up() == []
        put(sorter, "live", 1)
        assert query.catch_up() == seqs_of("live", 1)
    else:
        query.plan(ReadAllAvailable())
    sorter.open("w", first_seq=first)
    put(sorter, "w", *range(first, first + 8))
    assert query.catch_up() == seqs_of("w", *range(first, first + 8))
    put(sorter, "w", first + 8)
    assert query.catch_up() == seqs_of("w", first + 8)


def test_a_first_message_that_waits_is_no_beginning_either(access: TableAccess, sorter: StreamSorter) -> None:
    put(sorter, "w", 1000)
    query = latest(access)
    assert query.catch_up() == []
    sorter.open("w", first_seq=1000)
    assert query.catch_up() == seqs_of("w", 1000)


def test_queues_that_have_not_begun_take_no_room_in_an_offset(access: TableAccess, sorter: StreamSorter) -> None:
    for number in range(30):
        sorter.set_policy(f"idle-{number}", skip_after=99_999)
    put(sorter, "live", 0)
    for query in (latest(access), Query(access)):
        query.catch_up()
        assert unpacked(query.offsets[-1]) == {"live": 0}


def test_the_first_micro_batch_of_latest_is_what_came_since_though_more_has_come_when_it_is_read(
    access: TableAccess, sorter: StreamSorter
) -> None:
    put(sorter, "a", *range(3))
    put(sorter, "still", 0)
    query = latest(access)
    start = query.stream.initialOffset()
    put(sorter, "a", 3)
    put(sorter, "new", 0)
    query.offsets.append(query.stream.latestOffset(start, ReadAllAvailable()))
    put(sorter, "a", 4)
    put(sorter, "new", 1)
    put(sorter, "still", 1)
    first = [("a", 3), ("new", 0)]
    assert query.read() == first
    query.restart()
    assert query.read() == first
    assert query.catch_up() == [("a", 4), ("new", 1), ("still", 1)]


def test_a_first_micro_batch_of_latest_that_is_empty_is_so_when_it_is_done_again(
    access: TableAccess, sorter: StreamSorter
) -> None:
    put(sorter, "a", *range(3))
    query = latest(access)
    assert query.plan(ReadAllAvailable())
    put(sorter, "a", 3)
    put(sorter, "new", 0)
    assert query.catch_up() == [("a", 3), ("new", 0)]


def test_an_offset_of_an_older_version_forgets_queues_that_have_not_begun(
    access: TableAccess, sorter: StreamSorter
) -> None:
    sorter.set_policy("w", skip_after=99_999)
    put(sorter, "live", 0)
    query = Query(access, offsets=[packed({"w": -1, "live": 0})], done=1)
    assert query.catch_up() == []
    assert unpacked(query.offsets[-1]) == {"live": 0}
    assert len(query.offsets) == 2
    sorter.open("w", first_seq=-5)
    put(sorter, "w", *range(-5, 3))
    assert query.catch_up() == seqs_of("w", *range(-5, 3))


def test_an_offset_of_an_older_version_goes_on_though_such_a_queue_was_opened_higher_since(
    access: TableAccess, sorter: StreamSorter
) -> None:
    put(sorter, "w", 1000)
    query = Query(access, offsets=[packed({"w": -1})], done=1)
    sorter.open("w", first_seq=1000)
    assert query.catch_up() == seqs_of("w", 1000)
    put(sorter, "w", 1001)
    assert query.catch_up() == seqs_of("w", 1001)


def test_a_micro_batch_of_an_older_version_that_is_done_again_finds_its_beginnings_or_says_they_are_trimmed(
    access: TableAccess, sorter: StreamSorter
) -> None:
    put(sorter, "a", *range(5))
    query = Query(access, offsets=[packed({"a": 2})])
    assert query.catch_up() == seqs_of("a", *range(5))
    sorter.trim("a", 3, control_table=None)
    with pytest.raises(Trimmed, match="queue 'a' is trimmed up to seq 3"):
        Query(access, offsets=[packed({"a": 2})]).catch_up()


def test_a_queue_that_moved_on_and_was_trimmed_beyond_the_target_waits_for_the_next_run(
    access: TableAccess, sorter: StreamSorter
) -> None:
    put(sorter, "a", *range(10))
    query = Query(access)
    query.stream.prepareForTriggerAvailableNow()
    put(sorter, "a", *range(10, 20))
    sorter.trim("a", 15, control_table=None)
    assert query.plan(ReadAllAvailable())
    assert query.read() == []
    assert not query.plan(ReadAllAvailable())
    assert query.catch_up() == seqs_of("a", *range(16, 20))


@pytest.mark.parametrize("first", [-5, 1000])
@pytest.mark.parametrize("starting", ["earliest", "latest"])
def test_a_queue_that_is_opened_elsewhere_after_the_target_was_set_waits_for_the_next_run(
    access: TableAccess, sorter: StreamSorter, first: int, starting: str
) -> None:
    sorter.set_policy("w", skip_after=99_999)
    query = Query(access, {"startingPosition": starting})
    query.stream.prepareForTriggerAvailableNow()
    assert query.plan(ReadAllAvailable())
    sorter.open("w", first_seq=first)
    put(sorter, "w", first)
    assert not query.plan(ReadAllAvailable())
    assert query.catch_up() == seqs_of("w", first)


def test_a_queue_that_moved_between_the_target_and_the_beginning_of_latest_is_not_lost(
    access: TableAccess, sorter: StreamSorter
) -> None:
    put(sorter, "a", 0)
    query = latest(access)
    query.stream.prepareForTriggerAvailableNow()
    put(sorter, "a", 1)
    assert query.plan(ReadAllAvailable())
    assert query.read() == []
    put(sorter, "a", 2)
    assert query.catch_up() == seqs_of("a", 2)


def test_between_an_offset_and_itself_lies_nothing(access: TableAccess, sorter: StreamSorter) -> None:
    put(sorter, "a", 0)
    query = Query(access)
    assert query.catch_up() == seqs_of("a", 0)
    assert unpacked(query.offsets[-1], "begins") == {"a": -1}
    assert query.stream.partitions(query.offsets[-1], dict(query.offsets[-1])) == []


@contextmanager
def listing_again(query: Query, listed: Listing) -> Iterator[None]:
    """A scan is eventually consistent: this one answers as it did some moments before."""
    events = query.stream._access.sorter.stores.cursors._calls.client.meta.events
    answer = (SimpleNamespace(status_code=200), listed)
    events.register("before-call.dynamodb.Scan", lambda **_: answer, unique_id="again")
    yield
    events.unregister("before-call.dynamodb.Scan", unique_id="again")


def test_a_listing_that_is_some_moments_behind_is_no_lost_cursor(
    access: TableAccess, sorter: StreamSorter, dynamodb: Any
) -> None:
    put(sorter, "a", *range(3))
    query, listed = Query(access), dynamodb.scan(TableName=access.cursor_table)
    put(sorter, "a", 3)
    assert query.catch_up() == seqs_of("a", *range(4))
    with listing_again(query, listed):
        assert not query.plan(ReadAllAvailable())
    put(sorter, "a", 4)
    assert query.catch_up() == seqs_of("a", 4)


def test_a_listing_that_is_some_moments_behind_gives_latest_nothing_from_before_it_began(
    access: TableAccess, sorter: StreamSorter, dynamodb: Any
) -> None:
    sorter.set_policy("w", skip_after=99_999)
    query, listed = latest(access), dynamodb.scan(TableName=access.cursor_table)
    put(sorter, "w", *range(5))
    query.plan(ReadAllAvailable())
    with listing_again(query, listed):
        assert query.read() == []
    put(sorter, "w", 5)
    assert query.catch_up() == seqs_of("w", 5)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("starting", ["earliest", "latest"])
def test_all_that_is_released_since_comes_once_and_in_order_whatever_happens_between(
    access: TableAccess, sorter: StreamSorter, starting: str, seed: int
) -> None:
    chance = random.Random(seed)
    firsts = {f"q{number}": chance.choice([-7, 0, 50]) for number in range(6)}
    put(sorter, "old", *range(4))
    for queue in firsts:
        sorter.set_policy(queue, skip_after=99_999)
    query, ends, rows = Query(access, {"startingPosition": starting}), {"old": 4}, []
    query.plan(ReadAllAvailable())
    for _ in range(40):
        queue = chance.choice(["old", *firsts])
        if queue not in ends:
            sorter.open(queue, first_seq=firsts[queue])
        after = ends.get(queue, firsts.get(queue, 0))
        ends[queue] = after + chance.randrange(6)
        put(sorter, queue, *range(after, ends[queue]))
        rows += _step(query, chance)
    rows += query.catch_up()
    firsts["old"] = 0 if starting == "earliest" else 4
    for queue, end in ends.items():
        assert [seq for name, seq in rows if name == queue] == list(range(firsts[queue], end))


def _step(query: Query, chance: random.Random) -> Rows:
    """Plan, read, die between the two or before it was noted that all was read, or run until all is read."""
    limit = chance.choice([ReadAllAvailable(), ReadMaxRows(1), ReadMaxRows(2), ReadMaxRows(7)])
    if query.done == len(query.offsets) and not query.plan(limit):
        return []
    what = chance.choice(["die", "read", "die after", "all"])
    if what == "die":
        query.restart()
        return []
    if what == "all":
        query.restart()
        rows = query.read()
        query.stream.prepareForTriggerAvailableNow()
        while query.plan(limit):
            rows += query.read()
        return rows
    rows = query.read()
    if what == "die after":
        query.restart()
        assert query.read() == rows
    return rows


def test_a_small_queue_gets_its_turn_among_more_busy_queues_than_rows_also_after_restarts(
    access: TableAccess, sorter: StreamSorter
) -> None:
    put(sorter, "small", 0)
    query, served = Query(access), []
    for turn in range(6):
        for busy in range(5):
            put(sorter, f"busy-{busy}", 2 * turn, 2 * turn + 1)
        query.restart()
        assert query.plan(ReadMaxRows(2))
        served += query.read()
    assert {queue for queue, _ in served[:6]} == {"small", *(f"busy-{busy}" for busy in range(5))}
    assert len(served) == 12
    rows = served + query.catch_up(ReadMaxRows(4))
    assert [row for row in rows if row[0] == "busy-3"] == seqs_of("busy-3", *range(12))
    assert len(rows) == len(set(rows)) == 61
