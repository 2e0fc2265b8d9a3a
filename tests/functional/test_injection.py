"""Names and payloads are data: they end up in no expression, no path and no terminal as anything else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import OrderedConsumer, Pace, StreamSorter
from stream_sort.formats.terminal_text import UNSAFE
from stream_sort.model.consumption import Wake
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.archive.segments import read_segment, write_segment
from stream_sort.replay.ranges import Range
from tests.functional.operator_desk import OperatorDesk
from tests.properties.fuzz.values import CELLS, EXPRESSIONS, PATHS, TERMINALS
from tests.unit.slot_rows import rows_of, slots

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

    from tests.functional.conftest import Table

# A word that stands in nothing but what is hostile.
MARK = "Mallory"
NAMES = [f"{text}{MARK}" for text in (*EXPRESSIONS, "..", "a/b", "{x,y}", "x" * 500, *CELLS)]
# All that DynamoDB reads as a language.
READ = ("Expression", "Statement")


def texts_that_are_read(request: Any) -> list[str]:
    """Every expression and statement in a request."""
    if isinstance(request, list):
        return [text for one in request for text in texts_that_are_read(one)]
    if not isinstance(request, dict):
        return []
    own = [str(value) for name, value in request.items() if name.endswith(READ)]
    return own + [text for value in request.values() for text in texts_that_are_read(value)]


@pytest.fixture
def requests(dynamo: Table) -> list[Any]:
    sent: list[Any] = []
    dynamo.client.meta.events.register(
        "before-call.dynamodb", lambda params, **_: sent.append(json.loads(params["body"]))
    )
    return sent


def test_hostile_queues_are_queues_like_any_other(sorter: StreamSorter, requests: list[Any]) -> None:
    done: list[Any] = []
    consumer = OrderedConsumer("c", done.extend, sorter=sorter, pace=Pace(sleep=lambda _: None))
    consumer.create_tables()
    for name in NAMES:
        messages = [{"queue": name, "seq": seq, name: {name: [name]}, "text": name} for seq in (0, 1, 3)]
        for message in (messages[0], messages[2], messages[1]):
            sorter.put(message)
        assert sorter.gaps(name) == [range(2, 3)]
        sorter.skip(name, [2], reason=name[-200:])
        sorter.set_policy(name, "skip after 60 seconds")
        sorter.nudge(name)
        assert sorter.position(name) == sorter.explain(name).position == 3
        assert list(sorter.read(name)) == messages
        done.clear()
        consumer.process([Wake(name)])
        assert done == messages
    assert sorter.trim(NAMES[0], 1, control_table="Control") == 2
    assert [len(list(sorter.read(name))) for name in NAMES[1:]] == [3] * (len(NAMES) - 1)
    assert not [text for text in texts_that_are_read(requests) if MARK in text]


@pytest.mark.parametrize(
    "names", [("#q", ":s"), ("attribute_exists(a)", "seq = :v OR seq"), ("a'b", 'c"d'), ("?", "a.b[0]")]
)
def test_hostile_key_names_are_placeholders(names: tuple[str, str], dynamo: Table, requests: list[Any]) -> None:
    queue_key, seq_key = (f"{name}{MARK}" for name in names)
    client = dynamo.client
    for table in ("Items", "Cursor"):
        client.delete_table(TableName=table)
    sorter = StreamSorter(client=client, queue_key=queue_key, seq_key=seq_key, in_flight=1)
    sorter.create_tables()
    for seq in (0, 2, 1, 4):
        sorter.put({queue_key: "q", seq_key: seq})
    sorter.skip("q", [3])
    assert [message[seq_key] for message in sorter.read("q")] == [0, 1, 2, 4]
    assert not [text for text in texts_that_are_read(requests) if MARK in text]


@pytest.mark.parametrize(
    "queue", [name for name in (*PATHS, *CELLS, "..", ".", "a\\b", "con", "nul.txt") if len(name.encode()) <= 1024]
)
def test_a_hostile_queue_is_archived_below_its_folder_and_comes_back(queue: str, tmp_path: Path) -> None:
    home = tmp_path / "archive"
    held = Range(queue, -1, 2)
    manifest = write_segment(Storage(str(home)), held, slots(held))
    assert rows_of(read_segment(Storage(str(home)), manifest, held)) == rows_of(slots(held))
    assert {path.name for path in tmp_path.iterdir()} == {"archive"}
    assert len([path for path in home.rglob("*") if path.is_file()]) == 2


QUEUE = "\u202e\u2066[red]x[/red]"
COMMANDS = (
    ["status"],
    ["explain", "QUEUE"],
    ["gaps", "QUEUE"],
    ["read", "QUEUE"],
    ["tail", "QUEUE", "--since", "earliest", "--once"],
    ["policy", "QUEUE"],
    ["nudge", "QUEUE", "--yes"],
    ["advance", "QUEUE", "--yes"],
    ["skip", "QUEUE", "5", "--yes"],
    ["parked", "list"],
    ["dead", "list"],
    ["dead", "show", "QUEUE", "0"],
    ["late", "list", "QUEUE"],
    ["late", "show", "QUEUE", "2"],
    ["consumers", "list"],
    ["consumers", "reset", "QUEUE", "--to", "earliest", "--dry-run"],
    ["trim", "QUEUE", "--through", "0", "--yes"],
)


REFUSED = (
    *(["explain"], ["read"], ["put"], ["late", "show"], ["parked", "redrive"], ["trim"]),
    *(["dead", "show"], ["skip", "a"], ["tail", "--once", "--since"], ["policy", "a", "--set"], ["local", "invoke"]),
    *(["local", "invoke", "enqueue"], ["status", "--items-table"], ["status", "--stack"], []),
)


def obeyed(done: Result) -> list[str]:
    """What a terminal would obey in what a command said."""
    return UNSAFE.findall((done.stdout + done.stderr).replace("\n", ""))


@pytest.fixture
def hostile(sorter: StreamSorter) -> OperatorDesk:
    """A queue whose name, payloads, skips and errors are all hostile, with a dead letter; and one that is parked."""
    desk = OperatorDesk(sorter)
    everything = " ".join(TERMINALS)

    def fail(_: object) -> None:
        raise RuntimeError(everything)

    desk.put(QUEUE, 0, 1, 3, 6, text=everything, **{everything: everything})
    sorter.skip(QUEUE, [2], reason=everything)
    desk.put(QUEUE, 2, text=everything)
    desk.put("\u202eother", 0, text=everything)
    desk.clerk = fail
    for on_poison, queue in (("dead_letter", QUEUE), ("park", "\u202eother")):
        desk.hire(on_poison).process([Wake(queue)])
    return desk


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["plain", "json"])
def test_no_command_sends_a_terminal_what_it_would_obey(form: list[str], hostile: OperatorDesk) -> None:
    for words in COMMANDS:
        done = hostile.run(*(QUEUE if word == "QUEUE" else word for word in words), *form)
        # Of what a consumer keeps as a dead letter nothing is trimmed.
        assert done.exit_code == (1 if words[0] == "trim" else 0), (words, done.output)
        assert not obeyed(done), words


def test_no_error_sends_a_terminal_what_it_would_obey(hostile: OperatorDesk) -> None:
    for words in REFUSED:
        done = hostile.run(*words, " ".join(TERMINALS))
        assert done.exit_code in {1, 2}, (words, done.output)
        assert not obeyed(done), words
