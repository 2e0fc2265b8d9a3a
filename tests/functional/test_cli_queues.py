from __future__ import annotations

import json
import shlex
import time
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from stream_sort import OrderedConsumer, StoreUnavailable, StreamSorter, StreamSortError, Sweeper, TryLater
from stream_sort.cli import messages, queues, status
from stream_sort.cli.connection import Connection
from stream_sort.insight import doubts, overview, rows
from stream_sort.insight.sources import OwnConsumer
from stream_sort.model.message import take_message
from stream_sort.model.records import Arrival
from stream_sort.stores.dynamodb.calls import Calls
from stream_sort.stores.dynamodb.cursors import DynamoCursorStore
from stream_sort.stores.dynamodb.items import DynamoItemStore
from tests.functional.command_line import VARIABLES, Line, examples_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from stream_sort import Batch
    from stream_sort.insight.sources import Sources
    from stream_sort.model.records import QueuePage
    from tests.functional.conftest import Table

EXPLAINED = (
    status.status,
    *(queues.explain, queues.gaps, queues.skip, queues.policy, queues.nudge, queues.advance),
    *(messages.put, messages.read, messages.tail),
)
HOSTILE = "\x1b[2Jevil\u202e"


@pytest.fixture
def line(dynamo: Table, sorter: StreamSorter, monkeypatch: pytest.MonkeyPatch) -> Line:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    assert dynamo.client
    OrderedConsumer("process", sorter=sorter).create_tables()
    return Line()


@pytest.fixture
def put(sorter: StreamSorter) -> Callable[..., None]:
    def put(queue: str, *seqs: int) -> None:
        sorter.put_many({"queue": queue, "seq": seq} for seq in seqs)

    return put


def consume(sorter: StreamSorter, *names: str, poison: int | None = None) -> None:
    def handle(batch: Batch) -> None:
        if poison in batch.seqs:
            raise ValueError(f"no \x1b way with {poison}")

    consumer = OrderedConsumer("process", handle, sorter=sorter)
    for name in names:
        consumer.catch_up(name)


def test_status_shows_the_worst_first(line: Line, put: Callable[..., None], sorter: StreamSorter) -> None:
    put("fine", 0, 1)
    put("gapped", 0, 2, 3)
    put("stuck", 0, 1)
    consume(sorter, "fine", "gapped")
    consume(sorter, "stuck", poison=1)
    put("behind", 0)
    told = line.run("status").stdout
    names = ("stuck", "gapped", "behind", "fine")
    assert sorted(names, key=told.index) == list(names)
    assert "process at 1" in told
    assert "4 queues: 1 parked, 1 waiting for a seq, 2 not all consumed" in told
    assert "\x1b" not in told


@pytest.mark.parametrize(
    "words", [["status"], ["parked", "list"], ["consumers", "list"], ["policy", "--all"], ["explain", "ada"]]
)
def test_an_items_table_that_is_not_there_is_named_at_once(
    line: Line, put: Callable[..., None], sorter: StreamSorter, words: list[str]
) -> None:
    put("ada", 0)
    consume(sorter, "ada")
    assert "no table 'Nope' in eu-west-1" in line.error(*words, "--items-table", "Nope")


@pytest.mark.parametrize("words", [["status"], ["explain", "ada"], ["parked", "list"], ["consumers", "list"]])
def test_a_consumer_that_is_not_there_is_an_error_that_names_what_is_alike(
    line: Line, put: Callable[..., None], sorter: StreamSorter, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put("ada", 0)
    consume(sorter, "ada")
    told = line.error(*words, "--consumer", "proces")
    assert told.startswith("no consumer 'proces' is registered; there are 'process'; did you mean 'process'? It is ")
    line.run(*words, "--consumer", "process")
    # The stack's own is known, also if it has not begun.
    monkeypatch.setattr(Connection, "own", OwnConsumer("billing", "earliest", "stream-sort doctor"))
    if words[0] in {"status", "explain"}:
        line.run(*words, "--consumer", "billing")


def test_seqs_are_shown_as_skip_takes_them(line: Line, put: Callable[..., None]) -> None:
    put("ada", 0, 1_795_059_380)
    (first, last, missing) = line.run("gaps", "ada").stdout.split()[-3:]
    assert (first, last, missing) == ("1", "1795059379", "1,795,059,379")
    assert line.run("open", "bob", "--first-seq", "1795059380", "--yes").exit_code == 0
    put("bob", 1_795_059_380)
    assert " 1795059380 " in line.run("status", "bob").stdout


def test_status_and_report_name_a_consumer_of_the_stack_that_never_began(
    line: Line, put: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put("ada", 0, 1, 2)
    put("bob", 0)
    monkeypatch.setattr(Connection, "own", OwnConsumer("process", "earliest", "stream-sort local logs process"))
    told = line.run("status").stdout
    assert "2 queues: 0 parked, 0 waiting for a seq, 2 not all consumed (" in told
    said = "consumer process has not begun: 4 messages are due; see stream-sort local logs process"
    assert said in told
    assert line.json("status")["not_begun"] == {"process": said.partition(": ")[2]}
    page = tmp_path / "report.html"
    assert said in line.run("report", "-o", str(page)).stdout
    assert said in page.read_text().replace("Consumer", "consumer")


def bury(sorter: StreamSorter, queue: str, *seqs: int, name: str = "process") -> OrderedConsumer:
    """Make messages of a queue dead letters of a consumer."""

    def handle(batch: Batch) -> None:
        if set(seqs) & set(batch.seqs):
            raise ValueError("poison")

    consumer = OrderedConsumer(name, handle, sorter=sorter, on_poison="dead_letter", max_attempts=1, batch_size=1)
    consumer.catch_up(queue)
    return consumer


def test_status_shows_queues_with_dead_letters_behind_those_that_are_stuck(
    line: Line, put: Callable[..., None], sorter: StreamSorter
) -> None:
    put("gapped", 0, 2)
    put("lost-one", 0, 1, 2)
    put("lost-two", 0, 1, 2)
    put("stuck", 0, 1)
    bury(sorter, "lost-one", 1)
    bury(sorter, "lost-two", 0, 2)
    consume(sorter, "gapped")
    consume(sorter, "stuck", poison=1)
    told = line.run("status").stdout
    names = ("stuck", "gapped", "lost-two", "lost-one")
    assert sorted(names, key=told.index) == list(names)
    assert "  dead " in told
    assert "process: 2" in told
    assert "4 queues: 1 parked, 2 with dead letters, 1 waiting for a seq, 1 not all consumed (" in told
    dead = {one["queue"]: one["dead"] for one in line.json("status")["lines"]}
    assert dead == {"stuck": {}, "lost-two": {"process": 2}, "lost-one": {"process": 1}, "gapped": {}}


def test_dead_letters_that_were_discarded_are_no_trouble(
    line: Line, put: Callable[..., None], sorter: StreamSorter
) -> None:
    put("ada", 0, 1)
    bury(sorter, "ada", 1).discard("ada", 1, "no such account")
    assert line.json("status")["lines"][0]["dead"] == {}
    assert "dead" not in line.run("status").stdout


def test_right_after_a_load_the_one_real_gap_comes_first(
    line: Line, put: Callable[..., None], sorter: StreamSorter
) -> None:
    names = [f"acct-{number:02}" for number in range(20)]
    for name in names:
        put(name, 0, 2, 4)
    time.sleep(0.01)
    for name in names:
        put(name, *((1,) if name == "acct-18" else (1, 3)))
    rows = sorter.stores.cursors.rows().rows
    assert sum(row.in_doubt for row in rows) == 20
    seen = line.json("status")
    assert [(one["queue"], one["in_doubt"]) for one in seen["lines"] if one["gap_age"] is not None] == [
        ("acct-18", False)
    ]
    assert seen["lines"][0]["queue"] == "acct-18"
    # One page of cursor rows, the consumers, and one read a queue.
    assert (seen["settled"], seen["requests"]) == (20, 1 + 1 + 20)
    told = line.run("status").stdout
    assert "20 queues: 0 parked, 1 waiting for a seq, 0 not all consumed (" in told
    assert "?" not in told


def test_a_queue_that_was_freed_is_not_said_to_wait(line: Line, put: Callable[..., None], sorter: StreamSorter) -> None:
    put("freed", 0, 2)
    put("waits", 0, 2)
    time.sleep(0.01)
    sorter.skip("freed", 1)
    assert "2 queues: 0 parked, 1 waiting for a seq, 0 not all consumed (" in line.run("status").stdout
    for words in (["status"], ["status", "--deep"]):
        told = {one["queue"]: one["gap_age"] is None for one in line.json(*words)["lines"]}
        assert told == {"freed": True, "waits": False}


def test_a_queue_behind_which_only_skipped_seqs_lie_is_not_said_to_wait(
    line: Line, put: Callable[..., None], sorter: StreamSorter
) -> None:
    put("q", 0)
    sorter.skip("q", [2, 3])
    assert Sweeper(sorter).sweep().waiting == []
    (one,) = line.json("status")["lines"]
    assert (one["gap_age"], one["in_doubt"]) == (None, False)
    assert "0 waiting for a seq" in line.run("status").stdout


def test_doubts_beyond_the_bound_are_told_and_those_that_may_wait_longest_are_settled(
    line: Line, put: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("zoe", "bob", "ada"):
        put(name, 0, 2)
        time.sleep(0.01)
    for name in ("ada", "bob", "zoe"):
        put(name, 1, 4)
    monkeypatch.setattr(doubts, "DOUBTS", 1)
    lines = line.json("status")["lines"]
    assert [(one["queue"], one["in_doubt"]) for one in lines] == [("zoe", False), ("bob", True), ("ada", True)]
    told = line.run("status").stdout
    assert "1 waiting for a seq, 0 not all consumed, 2 in doubt" in told
    assert "?: 2 have moved since they began to wait" in told
    assert "The items of 1 such queue, " in told
    assert "--deep reads those of all" in told


def test_what_was_released_while_status_looked_is_no_gap(
    line: Line, put: Callable[..., None], sorter: StreamSorter, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("busy", 0, 2)
    time.sleep(0.01)
    put("busy", 1, 4)
    read = rows.cursor_rows

    def slow(one: Sources, damaged: dict[str, StreamSortError]) -> object:
        yield from list(read(one, damaged))
        # It goes on while the rows are on their way.
        sorter.put_many({"queue": "busy", "seq": seq} for seq in (3, 5, 6))

    monkeypatch.setattr(rows, "cursor_rows", slow)
    (one,) = line.json("status")["lines"]
    assert (one["position"], one["gap_age"], one["in_doubt"]) == (2, None, False)


def test_i7_a_queue_whose_doubt_cannot_be_settled_hides_no_other(
    line: Line, put: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ada", "bad", "eve"):
        put(name, 0, 2)
        time.sleep(0.01)
        put(name, 1, 4)
    arrivals = DynamoItemStore.arrivals

    def failing(self: DynamoItemStore, queue: str, *args: int) -> object:
        if queue == "bad":
            raise ZeroDivisionError
        return arrivals(self, queue, *args)

    monkeypatch.setattr(DynamoItemStore, "arrivals", failing)
    lines = line.json("status")["lines"]
    assert [one["queue"] for one in lines] == ["bad", "ada", "eve"]
    assert [one["error"] is None for one in lines] == [False, True, True]
    assert "bug in stream_sort" in lines[0]["error"]


@pytest.mark.parametrize("words", [["status"], ["status", "--deep"], ["status", "--json"]], ids=" ".join)
def test_a_wrong_items_table_is_met_once_by_status(
    line: Line, put: Callable[..., None], monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    for name in ("ada", "bob", "eve"):
        put(name, 0, 2)
        time.sleep(0.01)
        put(name, 1, 4)
    asked, once = [], Calls.once

    def counted(self: Calls, method: str, *args: object, **request: object) -> object:
        asked.append(method)
        return once(self, method, *args, **request)

    monkeypatch.setattr(Calls, "once", counted)
    assert "no table 'Nowhere' in eu-west-1" in line.error(*words, "--items-table", "Nowhere")
    assert asked.count("query") == 1 + 1, "the consumers, and the items once"


def test_a_gap_is_as_old_as_itself_not_as_the_one_before(line: Line, put: Callable[..., None]) -> None:
    put("q", 0, 2)
    put("q", 1)
    time.sleep(0.1)
    between = time.time()
    put("q", 4)
    for words in (["status"], ["status", "--deep"]):
        seen = line.json(*words)
        assert seen["at"] - seen["lines"][0]["gap_age"] > between - 0.01


def test_status_as_json_tells_everything(line: Line, put: Callable[..., None], sorter: StreamSorter) -> None:
    put("gapped", 0, 2, 3)
    consume(sorter, "gapped")
    seen = line.json("status", "--deep")
    (queue,) = seen["lines"]
    assert seen["consumers"] == ["process"]
    assert (queue["position"], queue["highest"], queue["waiting"], queue["lag"]) == (0, 3, 2, {"process": 0})
    assert queue["gap_age"] >= 0
    assert line.json("status")["lines"][0]["highest"] is None


def test_status_reads_each_row_once_and_no_items(line: Line, sorter: StreamSorter) -> None:
    sorter.put_many({"queue": f"q{number}", "seq": 0} for number in range(250))
    consume(sorter, "q0")
    seen = line.json("status")
    print(f"status over 250 queues, 1 consumer: {seen['requests']} requests")
    assert len(seen["lines"]) == 250
    # One page of cursor rows, the consumers, three hundreds of checkpoints, one page of dead letters.
    assert seen["requests"] == 1 + 1 + 3 + 1


def test_status_shows_as_many_as_asked_for_and_says_so(line: Line, put: Callable[..., None]) -> None:
    for name in ("app-1", "app-2", "app-3", "other"):
        put(name, 0)
    told = line.run("status", "--match", "app-*", "--limit", "2").stdout
    assert "other" not in told
    assert "1 more is not shown" in told
    assert line.run("status", "--match", "other").stdout.splitlines()[-1].startswith("1 queue: 0 parked, ")
    assert [queue["queue"] for queue in line.json("status", "--match", "app-*")["lines"]] == ["app-1", "app-2", "app-3"]


@pytest.mark.parametrize(
    "words", [["status"], ["status", "--deep"], ["explain"], ["gaps"], ["read"], ["status", "fine"]], ids=" ".join
)
def test_a_mistyped_queue_name_fails_and_is_named(line: Line, put: Callable[..., None], words: list[str]) -> None:
    put("fine", 0)
    for more in ([], ["--json"]):
        told = line.error(*words, "typo", *more)
        assert told == "there is no queue 'typo'"


def test_status_of_some_queues_reads_only_their_rows(
    line: Line, put: Callable[..., None], sorter: StreamSorter, dynamo: Table
) -> None:
    for number in range(30):
        put(f"app-{number}", 0, 2)
    consume(sorter, "app-3")
    seen = line.json("status", "app-3", "app-7")
    assert [one["queue"] for one in seen["lines"]] == ["app-3", "app-7"]
    assert seen["requests"] < 8
    assert "2 queues: " in line.run("status", "app-3", "app-7").stdout
    assert "one of the three" in line.error("status", "app-3", "--match", "app-*", code=2)
    dynamo.client.delete_item(TableName="Cursor", Key={"queue": {"S": "app-3"}})
    assert "had a cursor row and it is gone" in line.error("status", "app-3")


def test_status_without_a_control_table_shows_positions(
    line: Line, put: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    put("ada", 0)
    monkeypatch.delenv("STREAM_SORT_CONTROL_TABLE")
    assert line.json("status")["lines"][0]["position"] == 0


def test_status_watched_tells_rates_until_ctrl_c(
    line: Line, put: Callable[..., None], sorter: StreamSorter, monkeypatch: pytest.MonkeyPatch
) -> None:
    naps = []

    def nap(_: float) -> None:
        naps.append(1)
        if len(naps) > 1:
            raise KeyboardInterrupt
        sorter.put({"queue": "ada", "seq": 1})

    put("ada", 0)
    monkeypatch.setattr(status, "sleep", nap)
    told = line.run("status", "--watch", "--json", code=130).stdout.splitlines()
    assert [json.loads(one)["lines"][0]["position"] for one in told] == [0, 1]
    assert json.loads(told[1])["lines"][0]["rate"] > 0


def test_explain_says_what_is_missing_and_the_command_that_frees_the_queue(
    line: Line, put: Callable[..., None], sorter: StreamSorter
) -> None:
    put("my queue", 0, 1, 4, 5, 9)
    consume(sorter, "my queue")
    told = line.run("explain", "my queue").stdout
    assert "released through seq 1" in told
    assert "It waits for seq 2-3, since " in told
    assert "2 gaps in all" in told
    assert "3 messages, up to seq 9" in told
    assert "The gap is not skipped automatically" in told
    assert "Consumer 'process' is up to date (seq 1)" in told
    command = told.splitlines()[-1].strip()
    assert command == "stream-sort skip 'my queue' 2-3"
    line.run(*shlex.split(command)[1:], "--yes")
    assert sorter.position("my queue") == 5


def test_explain_says_where_a_missing_message_may_be_and_what_is_given_up_without_it(
    line: Line, put: Callable[..., None]
) -> None:
    put("new", 3)
    told = line.run("explain", "new").stdout
    assert "If it was refused, it is among the dead letters of the stack: stream-sort dead-letters list" in told
    assert "If not, have it sent again." in told
    assert "Skip only what will never come" in told
    assert "Open the queue at seq 3 only if its producer begins there: lower seqs are refused from then on." in told
    put("old", 0, 2)
    told = line.run("explain", "old").stdout
    assert "dead-letters list" in told
    assert "Open the queue" not in told
    put("well", 0)
    assert "dead-letters list" not in line.run("explain", "well").stdout


def test_a_queue_with_a_damaged_row_is_not_left_out_and_keeps_no_other_one_back(
    line: Line, put: Callable[..., None], dynamo: Table
) -> None:
    for name in ("ada", "bad", "eve"):
        put(name, 0)
    damage = {"UpdateExpression": "SET seq = :x", "ExpressionAttributeValues": {":x": {"S": "oops"}}}
    dynamo.client.update_item(TableName="Cursor", Key={"queue": {"S": "bad"}}, **damage)
    told = line.json("advance", "--all", "--yes", code=1)
    assert {name: "error" in one for name, one in told.items()} == {"ada": False, "bad": True, "eve": False}
    assert told["bad"]["error"].startswith("RowDamaged: ")
    assert sorted(line.json("policy", "--all", code=1)) == ["ada", "eve"]
    # To touch a row is not to read it.
    assert sorted(line.json("nudge", "--all", "--yes")) == ["ada", "bad", "eve"]


def test_a_throttle_of_one_queue_keeps_no_other_from_being_nudged(
    line: Line, put: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ada", "bad", "eve"):
        put(name, 0)
    nudge = StreamSorter.nudge

    def failing(sorter: StreamSorter, queue: str) -> None:
        if queue == "bad":
            raise StoreUnavailable("throttled")
        nudge(sorter, queue)

    monkeypatch.setattr(StreamSorter, "nudge", failing)
    told = line.json("nudge", "--all", "--yes", code=1)
    assert {name: "error" in one for name, one in told.items()} == {"ada": False, "bad": True, "eve": False}


def test_explain_says_why_a_consumer_does_not_get_on(
    line: Line, put: Callable[..., None], sorter: StreamSorter
) -> None:
    put("ada", 0, 1, 2)
    consume(sorter, "ada", poison=1)
    told = line.run("explain", "ada").stdout
    assert "parked at seq 1, since" in told
    assert r"ValueError: no \x1b way with 1" in told
    assert "stream-sort parked redrive ada --consumer process" in told
    assert line.json("explain", "ada")["consumers"][0]["parked"]["seq"] == 1


def test_explain_counts_no_skipped_seq_as_a_message(line: Line, put: Callable[..., None], sorter: StreamSorter) -> None:
    put("ada", 0)
    sorter.skip("ada", 8)
    assert "Skipped in advance: seq 8." in line.run("explain", "ada").stdout
    put("ada", 9, 10)
    assert "Stored beyond that: 2 messages and 1 skipped seq, up to seq 10." in line.run("explain", "ada").stdout


def test_explain_asks_once_whether_the_sweep_runs(line: Line, put: Callable[..., None]) -> None:
    put("ada", 0, 2)
    line.run("policy", "ada", "--set", "skip after 0 seconds", "--yes")
    assert "It acts with the next sweep; does the sweep run?\n" in line.run("explain", "ada").stdout


def test_explain_tells_when_the_policy_acts(line: Line, put: Callable[..., None]) -> None:
    put("ada", 0, 2)
    line.run("policy", "ada", "--set", "skip after 3600 seconds", "--yes")
    assert "skip after 3600 seconds. It acts at 20" in line.run("explain", "ada").stdout


def test_explain_names_the_command_for_a_message_that_nobody_released(
    line: Line, dynamo: Table, put: Callable[..., None], sorter: StreamSorter
) -> None:
    put("ada", 0)
    dynamo.client.put_item(TableName="Items", Item={"queue": {"S": "ada"}, "seq": {"N": "1"}})
    told = line.run("explain", "ada").stdout
    assert "Seq 1 is stored but not released" in told
    command = next(one.strip() for one in told.splitlines() if "stream-sort" in one)
    assert command == "stream-sort advance ada"
    assert "1 message released; position 1" in line.run("advance", "ada", "--yes").stdout
    assert sorter.position("ada") == 1


def test_the_command_of_explain_has_the_options_that_lead_to_the_tables(
    line: Line, put: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    put("ada", 1)
    monkeypatch.delenv("STREAM_SORT_ITEMS_TABLE")
    told = line.run("explain", "ada", "--items-table", "Items").stdout
    assert "stream-sort skip ada 0 --items-table Items" in told


def test_the_command_of_explain_works_for_names_and_seqs_that_look_like_options(
    line: Line, sorter: StreamSorter
) -> None:
    sorter.open("-rf", first_seq=-9)
    sorter.put_many({"queue": "-rf", "seq": seq} for seq in (-9, -6))
    told = line.run("explain", "--", "-rf").stdout
    command = next(one.strip() for one in told.splitlines() if "stream-sort skip" in one)
    assert command == "stream-sort skip -- -rf -8--7"
    line.run("skip", "--yes", *shlex.split(command)[2:])
    assert sorter.position("-rf") == -6


def test_explain_says_of_a_consumer_that_did_nothing_that_it_did_nothing(
    line: Line, put: Callable[..., None], sorter: StreamSorter
) -> None:
    put("ada", 0)
    consume(sorter, "ada", poison=0)
    told = line.run("explain", "ada").stdout
    assert "Consumer 'process' has done nothing yet; it is 1 seq behind." in told
    assert "seq -1" not in told


def test_explain_tells_what_was_discarded(line: Line, put: Callable[..., None], sorter: StreamSorter) -> None:
    put("ada", 0, 1, 2)
    bury(sorter, "ada", 1).discard("ada", 1, "no such account")
    told = line.run("explain", "ada").stdout
    gone, _, why = next(one for one in told.splitlines() if "discarded" in one).partition("; why: ")
    assert gone == "Consumer 'process' discarded 1 message: seq 1"
    assert "no such account" in line.run(*shlex.split(why)[1:]).stdout
    assert "dead letter" not in told
    (reader,) = line.json("explain", "ada")["consumers"]
    assert [(one["seq"], one["discarded"]) for one in reader["discarded"]] == [(1, "no such account")]
    assert reader["dead_letters"] == []


def test_explain_counts_no_attempt_where_the_message_is_not_to_blame(
    line: Line, put: Callable[..., None], sorter: StreamSorter
) -> None:
    def handle(_: Batch) -> None:
        raise TryLater("the bank is closed")

    put("ada", 0)
    OrderedConsumer("process", handle, sorter=sorter).catch_up("ada")
    told = line.run("explain", "ada").stdout
    assert "after no attempt that counts; next try at" in told
    assert "0 attempts" not in told


def test_skip_says_that_nothing_is_stored_beyond(line: Line, put: Callable[..., None]) -> None:
    put("ada", *range(20))
    told = line.run("skip", "ada", "25", given="n\n", code=1).stderr
    assert "Nothing is stored beyond 19: what comes later for these seqs will not be delivered" in told
    put("bob", 0, 2)
    assert "Nothing is stored" not in line.run("skip", "bob", "1", "--yes").stderr


def test_a_screen_that_is_too_small_keeps_the_summary(put: Callable[..., None], sorter: StreamSorter) -> None:
    put("ada", 0, 2)
    put("bob", 0)
    seen = overview.look(sorter.sources())
    screen = Console(width=100)
    shown = [
        "".join(part.text for part in screen.render(status._table(seen, 1, screen, deep=False, summary_first=first)))
        for first in (True, False)
    ]
    summary = "2 queues: 0 parked, 1 waiting for a seq"
    assert [text.startswith(summary) for text in shown] == [True, False]
    assert all(summary in text and "1 more is not shown" in text for text in shown)


def test_explain_of_an_unknown_queue_is_an_error(line: Line) -> None:
    assert "ada" in line.error("explain", "ada")


def test_gaps_are_listed(line: Line, put: Callable[..., None]) -> None:
    put("ada", 0, 2, 5)
    assert line.json("gaps", "ada")["gaps"] == [{"from": 1, "through": 1}, {"from": 3, "through": 4}]
    assert "through" in line.run("gaps", "ada").stdout
    put("bob", 0)
    assert line.run("gaps", "bob").stdout == "no gaps\n"


def test_skip_asks_first_and_changes_nothing_without_a_yes(
    line: Line, put: Callable[..., None], sorter: StreamSorter
) -> None:
    put("ada", 0, 2)
    for answer in ("n\n", ""):
        result = line.run("skip", "ada", "1", given=answer, code=1)
        assert "give up" in result.stderr
        assert "nothing was changed" in result.stderr
    assert sorter.position("ada") == 0
    assert "1 seq skipped, 1 message released; position 0 -> 2" in line.run("skip", "ada", "1", given="y\n").stdout


def test_skip_counts_messages_and_not_tombstones(line: Line, put: Callable[..., None], sorter: StreamSorter) -> None:
    put("ada", 0, 3, 6)
    sorter.skip("ada", [4, 5], "earlier")
    told = line.run("skip", "ada", "1-2", "--yes").stdout
    assert told == "ada: 2 seqs skipped, 2 messages released; position 0 -> 6\n"
    put("bob", 0, 2, 3)
    done = line.json("skip", "bob", "1", "--yes")
    assert (done["skipped"], done["messages"], done["released"]) == ([1], 2, 3)
    put("cal", 0)
    assert line.run("skip", "cal", "1-3", "--yes").stdout == (
        "cal: 3 seqs skipped, 0 messages released; position 0 -> 3\n"
    )


def test_skip_of_what_others_release_meanwhile_counts_none_of_it(
    line: Line, put: Callable[..., None], sorter: StreamSorter, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("ada", 0, 3)
    skip = DynamoItemStore.skip

    def overtaken(self: DynamoItemStore, *given: object) -> object:
        done = skip(self, *given)  # type: ignore[arg-type]
        sorter.advance("ada")
        return done

    monkeypatch.setattr(DynamoItemStore, "skip", overtaken)
    told = line.run("skip", "ada", "1-2", "--yes").stdout
    assert told == "ada: 2 seqs skipped, 0 messages released; position 3 -> 3\n"


def test_advance_counts_messages_and_not_tombstones(line: Line, dynamo: Table, put: Callable[..., None]) -> None:
    put("ada", 0, 3)
    for seq in (1, 2):
        item = {"queue": {"S": "ada"}, "seq": {"N": str(seq)}, "_ss_skipped": {"S": "lost"}}
        dynamo.client.put_item(TableName="Items", Item=item)
    assert line.run("advance", "ada", "--yes").stdout == "ada: 1 message released; position 3\n"


def test_more_than_can_be_looked_at_is_counted_by_seqs(
    line: Line, put: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stream_sort.insight.released.MOST_COUNTED", 3)
    put("ada", 0, 2, 3, 4, 5)
    assert "1 seq skipped, up to 4 messages released" in line.run("skip", "ada", "1", "--yes").stdout


def test_skip_says_which_seqs_were_not_missing(line: Line, put: Callable[..., None], sorter: StreamSorter) -> None:
    put("bob", 0, 1, 2, 4, 6)
    sorter.skip("bob", 7)
    done = line.run("skip", "bob", "--yes", "--", "-3--1", "1-2", "3", "4", "6-8")
    assert "bob: 2 seqs skipped" in done.stdout
    assert done.stderr.splitlines()[1:] == [
        "bob: not skipped: seqs -3--1, before the start of the queue at 0",
        "bob: not skipped: seqs 1-2, released already",
        "bob: not skipped: seqs 4, 6-7, stored or skipped before",
    ]
    again = line.run("skip", "bob", "1", "--yes")
    assert again.stdout.startswith("bob: 0 seqs skipped")
    assert "bob: not skipped: seq 1, released already\n" in again.stderr
    assert "not skipped" not in line.run("skip", "bob", "5", "--yes").stderr


@pytest.mark.parametrize("words", [["skip", "nope", "5"], ["policy", "nope", "--set", "wait"]], ids=" ".join)
def test_what_is_done_to_a_queue_that_has_not_begun_names_the_option_for_it(line: Line, words: list[str]) -> None:
    told = line.error(*words, "--yes")
    assert told == "there is no queue 'nope'; to begin it, give --new"
    assert "--new" not in line.error("policy", "nope")


def test_skip_takes_ranges_or_all_gaps(line: Line, put: Callable[..., None], sorter: StreamSorter) -> None:
    put("ada", 3, 6, 9)
    assert line.json("skip", "ada", "0-2", "4..5", "--yes")["skipped"] == [0, 1, 2, 4, 5]
    line.run("skip", "ada", "--all-gaps", "--yes", "--reason", "gone")
    assert sorter.position("ada") == 9


@pytest.mark.parametrize(
    "words", [["x"], ["5-2"], [], ["1", "--all-gaps"], ["0-99999999999"], ["0-99999999999999999999"], ["1-"], ["1e3"]]
)
def test_skip_refuses_what_are_no_seqs(line: Line, words: list[str]) -> None:
    line.error("skip", "ada", *words, "--yes", code=2)


def test_a_policy_is_set_and_shown_by_pattern(line: Line, put: Callable[..., None], sorter: StreamSorter) -> None:
    for name in ("app-1", "app-2", "other"):
        put(name, 0)
    told = line.json("policy", "--match", "app-*", "--set", "skip after 5 seconds", "--yes")
    assert told == {"app-1": "skip after 5 seconds", "app-2": "skip after 5 seconds"}
    assert str(sorter.policy("other")) == "wait"
    assert "wait" in line.run("policy", "other").stdout
    assert "skip after" in line.error("policy", "other", "--set", "never", "--yes", code=2)


def test_nudge_touches_the_row_of_each_queue(line: Line, put: Callable[..., None], sorter: StreamSorter) -> None:
    put("ada", 0)
    put("bob", 0)
    assert line.json("nudge", "--all", "--yes") == {"ada": {"nudged": True}, "bob": {"nudged": True}}
    rows = [sorter.stores.cursors.get(name) for name in ("ada", "bob")]
    assert [row.nudges for row in rows if row] == [1, 1]


def test_a_queue_that_cannot_be_nudged_keeps_no_other_one_back(
    line: Line, put: Callable[..., None], dynamo: Table
) -> None:
    put("ada", 0)
    put("lost", 0)
    dynamo.client.delete_item(TableName="Cursor", Key={"queue": {"S": "lost"}})
    result = line.run("nudge", "lost", "ada", "--yes", code=1)
    assert result.stdout == "ada: nudged\n"
    assert result.stderr.splitlines()[-1].startswith("stream-sort: queue 'lost' had a cursor row and it is gone")
    told = line.json("nudge", "lost", "ada", "--yes", code=1)
    assert told["ada"] == {"nudged": True}
    assert told["lost"]["error"].startswith("CursorLost: ")


@pytest.mark.parametrize("command", ["nudge", "advance"])
def test_a_mistyped_name_is_refused_before_anybody_is_asked(
    line: Line, put: Callable[..., None], sorter: StreamSorter, command: str
) -> None:
    put("ada", 0)
    assert "there is no queue 'none'" in line.error(command, "ada", "none")
    row = sorter.stores.cursors.get("ada")
    assert row is not None
    assert row.nudges == 0


def test_advance_tells_programs_how_many_and_how_far(line: Line, put: Callable[..., None]) -> None:
    put("ada", 0, 1)
    assert line.json("advance", "ada", "--yes") == {"ada": {"released": 0, "messages": 0, "position": 1}}


def test_no_queue_named_is_bad_usage(line: Line) -> None:
    for command in ("nudge", "advance", "policy"):
        assert "which queues" in line.error(command, code=2)


@pytest.mark.parametrize(
    "words",
    [
        ["gaps", "bgi0"],
        ["skip", "bgi0", "5", "--yes"],
        ["policy", "bgi0"],
        ["policy", "big0", "bgi0", "--set", "skip after 5 seconds", "--yes"],
        ["advance", "bgi0", "--yes"],
    ],
    ids=" ".join,
)
def test_a_mistyped_name_is_refused_and_makes_no_queue(line: Line, words: list[str], put: Callable[..., None]) -> None:
    put("big0", 0)
    assert "there is no queue 'bgi0'" in line.run(*words, code=1).stderr
    (queue,) = line.json("status")["lines"]
    assert (queue["queue"], queue["policy"]) == ("big0", "wait")


def test_a_queue_may_be_skipped_and_given_a_policy_before_its_first_message(line: Line, sorter: StreamSorter) -> None:
    line.run("skip", "ada", "0-1", "--new", "--yes")
    line.run("policy", "bob", "--set", "skip after 5 seconds", "--new", "--yes")
    assert sorter.position("ada") == 1
    assert str(sorter.policy("bob")) == "skip after 5 seconds"


def test_skip_names_the_seqs_before_it_asks(line: Line, put: Callable[..., None]) -> None:
    put("ada", 0, 1, 4, 6)
    told = line.run("skip", "ada", "--all-gaps", given="n\n", code=1).stderr
    assert told.startswith("ada: give up on seqs 2-3, 5; it is released through 1\n")
    assert "give up on seq 5;" in line.run("skip", "ada", "5", given="n\n", code=1).stderr


def test_a_pattern_that_no_queue_matches_is_told(line: Line) -> None:
    assert line.error("nudge", "--match", "zz*", "--yes") == "no queue matches 'zz*'; see stream-sort status"
    assert line.error("nudge", "--all", "--yes") == "there is no queue yet; see stream-sort status"


@pytest.mark.parametrize(
    "words", [["--queue-key", "lane"], ["--seq-key", "n"], ["--cursor-table", "Control"], ["--cursor-table", "Items"]]
)
@pytest.mark.parametrize("seqs", [(), (0, 2)], ids=["empty", "filled"])
def test_a_table_that_does_not_fit_is_no_table_without_queues(
    line: Line, words: list[str], seqs: tuple[int, ...], put: Callable[..., None]
) -> None:
    if words[0] == "--seq-key" and not seqs:
        assert "0 queues" in line.run("status", *words).stdout
        return
    for seq in seqs:
        put("ada", seq)
    if words[1] == "Items":
        words = [*words, "--items-table", "Cursor"]
    told = line.error("status", *words, code=2)
    assert words[1] in told
    assert "check --cursor-table, --queue-key and --seq-key" in told


def test_a_hostile_name_is_shown_and_not_obeyed(line: Line, dynamo: Table) -> None:
    dynamo.client.put_item(
        TableName="Cursor", Item={"queue": {"S": HOSTILE}, "seq": {"N": "1"}, "_ss_first_seq": {"N": "0"}}
    )
    for words in (["status"], ["status", "--json"], ["explain", HOSTILE], ["gaps", HOSTILE], ["policy", HOSTILE]):
        result = line.runner.invoke(line.app, words)
        assert not set(result.stdout + result.stderr) & {"\x1b", "\u202e"}, words


def test_a_table_that_is_not_there_is_one_line(line: Line) -> None:
    assert "'Nothing'" in line.error("status", "--cursor-table", "Nothing")


@pytest.mark.parametrize("command", EXPLAINED, ids=lambda one: one.__name__)
def test_every_command_has_an_example_that_runs(
    command: Callable[..., None],
    line: Line,
    put: Callable[..., None],
    tmp_path: object,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(str(tmp_path))
    (tmp_path / "messages.jsonl").write_text('{"queue": "ada", "seq": 100}\n')  # type: ignore[operator]
    put("ada", *range(100))
    put("bob", 0)
    (example,) = examples_of(command.__doc__ or "")
    assert f"Example: {example}" in " ".join(line.run(command.__name__, "--help").stdout.split())
    program, *words = shlex.split(example)
    assert program == "stream-sort"
    line.run(*words)
    if command.__name__ not in {"read", "tail"}:
        line.json(*words)


def broken_highest(monkeypatch: pytest.MonkeyPatch, bad: str) -> None:
    """Lets a read of the items table meet a bug for one queue."""
    highest = DynamoItemStore.highest

    def failing(self: DynamoItemStore, queue: str) -> int | None:
        if queue == bad:
            raise ZeroDivisionError("in the middle")
        return highest(self, queue)

    monkeypatch.setattr(DynamoItemStore, "highest", failing)


def test_i7_an_unforeseen_error_in_one_queue_is_told_in_its_line_of_status_and_hides_no_other(
    line: Line, put: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ada", "bad", "eve"):
        put(name, 0, 2)
    broken_highest(monkeypatch, "bad")
    told = line.run("status", "--deep").stdout
    assert "3 queues" in told
    assert "1 could not be looked at" in told
    assert "bad: queue 'bad': unexpected ZeroDivisionError('in the middle')" in " ".join(told.split())
    lines = line.json("status", "--deep")["lines"]
    assert [one["queue"] for one in lines] == ["bad", "ada", "eve"], "the worst first"
    assert [one["highest"] for one in lines] == [None, 2, 2]
    assert [one["error"] is None for one in lines] == [False, True, True]


def test_i7_an_unforeseen_error_in_one_queue_keeps_no_other_from_being_advanced(
    line: Line, put: Callable[..., None], sorter: StreamSorter, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ada", "bad", "eve"):
        put(name, 0)
        sorter.stores.items.put(Arrival(take_message({"queue": name, "seq": 1}, sorter.options.keys), 0), 1.0)
    look = DynamoItemStore.look

    def failing(self: DynamoItemStore, queue: str, *args: int) -> object:
        if queue == "bad":
            raise ZeroDivisionError("in the middle")
        return look(self, queue, *args)

    monkeypatch.setattr(DynamoItemStore, "look", failing)
    told = line.json("advance", "--all", "--yes", code=1)
    assert {name: "error" in one for name, one in told.items()} == {"ada": False, "bad": True, "eve": False}
    monkeypatch.undo()
    assert [sorter.position(name) for name in ("ada", "bad", "eve")] == [1, 0, 1]


def test_status_and_explain_tell_the_age_that_the_sweep_measured(
    line: Line, dynamo: Table, put: Callable[..., None], sorter: StreamSorter
) -> None:
    before = StreamSorter(client=dynamo.client, clock=lambda: time.time() - 1_000)
    before.put_many({"queue": "ada", "seq": seq} for seq in (0, 2, 4))
    put("ada", 1)
    for _ in range(2):
        (one,) = line.json("status")["lines"]
        assert (one["in_doubt"], 1_000 <= one["gap_age"] < 1_100) == (False, True)
        Sweeper(sorter).sweep()
    assert 1_000 <= time.time() - line.json("explain", "ada")["state"]["waiting_since"] < 1_100


@pytest.mark.parametrize(
    "words",
    [["explain"], ["status"], ["gaps"], ["read"], ["policy"], ["nudge", "--yes"], ["tail", "--once"]],
    ids=" ".join,
)
def test_a_mistyped_queue_is_told_with_those_of_names_alike(
    line: Line, put: Callable[..., None], words: list[str]
) -> None:
    for name in ("bob", "ada", "carol"):
        put(name, 0)
    assert line.error(*words, "bbo") == "there is no queue 'bbo'; did you mean 'bob'?"
    assert line.error(*words, "xyz") == "there is no queue 'xyz'"


def test_a_mistyped_queue_costs_one_page_of_names(
    line: Line, put: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    put("bob", 0)
    pages: list[object] = []
    listed = DynamoCursorStore.queues

    def queues(self: DynamoCursorStore, start: object = None) -> QueuePage:
        pages.append(start)
        return listed(self, start)

    monkeypatch.setattr(DynamoCursorStore, "queues", queues)
    assert line.error("explain", "bbo").endswith("did you mean 'bob'?")
    assert pages == [None]
    monkeypatch.setattr(DynamoCursorStore, "queues", lambda *_: (_ for _ in ()).throw(StoreUnavailable("no")))
    assert line.error("explain", "bbo") == "there is no queue 'bbo'"


def test_a_queue_to_be_begun_may_be_a_mistyped_one(line: Line, put: Callable[..., None]) -> None:
    put("bob", 0)
    told = line.error("skip", "bbo", "5", "--yes")
    assert told == "there is no queue 'bbo'; did you mean 'bob'? To begin it, give --new"
