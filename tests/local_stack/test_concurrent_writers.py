"""Eight processes on the same queues, two of them killed again and again: nothing lost, nothing out of order."""

from __future__ import annotations

import json
import random
import time
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import StreamSorter
from tests.local_stack.crew import Killer, WriterProcess
from tests.local_stack.streams import broken_link, cursor_changes, stream_records

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stream_sort.local.ministack import MiniStack
    from tests.conftest import Tables

Message = dict[str, Any]

WRITERS = 8
VICTIMS = 2
KILLS = 12
LENGTHS = {"orders": 2_000, "billing [eu]": 1_800, "ünïcode/🚚": 1_200}
TWICE, CONTESTED = 400, 120


def body_of(queue: str, seq: int, version: str = "") -> str:
    return f"{queue}:{seq}:{version}".ljust(200, ".")


def arrivals(rng: random.Random) -> list[Message]:
    """Every message at least once, some twice, some in a second version, each out of its place by up to a tenth."""
    originals = [
        {"queue": queue, "seq": seq, "body": body_of(queue, seq)}
        for queue, length in LENGTHS.items()
        for seq in range(length)
    ]
    again = rng.sample(originals, TWICE)
    others = [
        message | {"body": body_of(message["queue"], message["seq"], "other")}
        for message in rng.sample(originals, CONTESTED)
    ]
    return sorted(
        [*originals, *again, *others],
        key=lambda message: message["seq"] / LENGTHS[message["queue"]] + rng.uniform(0, 0.1),
    )


def calls_of(messages: list[Message], rng: random.Random) -> Iterator[list[Message]]:
    """About half of the calls are puts, the others are batches of up to 50."""
    while messages:
        size = 1 if rng.random() < 0.5 else rng.randint(2, 50)
        yield messages[:size]
        messages = messages[size:]


@pytest.fixture
def crew(ministack: MiniStack, tables: Tables, dynamodb: Any, tmp_path: Path) -> Iterator[list[WriterProcess]]:
    # A stream on the items shows whether a slot was ever written twice.
    dynamodb.update_table(
        TableName=tables.items, StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    )
    rng = random.Random(7)
    mixed = arrivals(rng)
    arguments = [json.dumps(ministack.connection), tables.items, tables.cursor]
    writers = [
        WriterProcess(tmp_path / f"writer-{number}", arguments, list(calls_of(mixed[number::WRITERS], rng)))
        for number in range(WRITERS)
    ]
    yield writers
    for one in writers:
        one.kill()


def run(writers: list[WriterProcess]) -> float:
    """Let them finish, killing two of them on the way; answers the seconds it took."""
    killers = [Killer(victim, random.Random(number)) for number, victim in enumerate(writers[:VICTIMS])]
    began = time.monotonic()
    while [one for one in writers if one.running]:
        for killer in killers:
            killer.look(time.monotonic())
        time.sleep(0.005)
    return time.monotonic() - began


def test_killed_and_competing_writers_leave_every_queue_complete(
    crew: list[WriterProcess], tables: Tables, dynamodb: Any, dynamodb_streams: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = run(crew)

    victims = crew[:VICTIMS]
    assert all(one.kills >= KILLS // VICTIMS for one in victims)
    assert sum(one.kills_inside_a_call for one in victims) >= KILLS // 2
    assert not any(one.pending for one in crew)

    sorter = StreamSorter(items_table=tables.items, cursor_table=tables.cursor, client=dynamodb)
    stored = {queue: list(sorter.read(queue)) for queue in LENGTHS}
    for queue, length in LENGTHS.items():
        assert sorter.position(queue) == length - 1
        assert [message["seq"] for message in stored[queue]] == list(range(length))

    check_outcomes(crew, stored)
    # MiniStack's stream shows PutItem but not PartiQL's INSERT, which cannot overwrite.
    assert {record["eventName"] for record in stream_records(dynamodb_streams, tables.items)} == {"INSERT"}

    changes = defaultdict(list)
    for change in cursor_changes(dynamodb_streams, tables.cursor):
        changes[change.queue].append(change)
    assert {queue: (broken_link(chain), chain[-1].new) for queue, chain in changes.items()} == {
        queue: (None, length - 1) for queue, length in LENGTHS.items()
    }

    acks = [ack for one in crew for ack in one.acks]
    requests = sum(ack["requests"] for ack in acks)
    with capsys.disabled():
        print(
            f"\n{WRITERS} writers, {sum(one.kills for one in crew)} kills "
            f"({sum(one.kills_inside_a_call for one in crew)} inside a call), {sum(LENGTHS.values()):,} messages in "
            f"{len(acks):,} calls, {sum(map(len, changes.values())):,} cursor records, "
            f"{requests:,} acknowledged requests in {seconds:.1f} s ({requests / seconds:.0f}/s)"
        )


def check_outcomes(crew: list[WriterProcess], stored: dict[str, list[Message]]) -> None:
    """What each writer was told agrees with what is stored now: so it never changed in between."""
    accepted: Counter[tuple[str, int]] = Counter()
    told: Counter[str] = Counter()
    for ack in (ack for one in crew for ack in one.acks):
        for status in ("accepted", "duplicate", "conflict"):
            for message in ack.get(status, ()):
                queue, seq = message["queue"], message["seq"]
                same = stored[queue][seq] == message
                assert same is (status != "conflict"), (status, message, stored[queue][seq])
                accepted[queue, seq] += status == "accepted"
                told[status] += 1
    assert max(accepted.values()) == 1
    # Of two versions one loses, and loses twice if it was sent twice.
    assert told["conflict"] >= CONTESTED
    assert told["duplicate"] >= TWICE // 2
    for queue, length in LENGTHS.items():
        for seq in range(length):
            bodies = {body_of(queue, seq), body_of(queue, seq, "other")}
            assert stored[queue][seq]["body"] in bodies
