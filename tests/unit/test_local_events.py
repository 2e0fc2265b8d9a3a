"""What `stream-sort local` reads and shows: events, names of the stack in samples, errors of a function's start."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from stream_sort.cli.demo.play import what_next
from stream_sort.cli.local import read_event
from stream_sort.errors import StreamSortError
from stream_sort.local.function_logs import init_errors
from stream_sort.local.project import with_names_of

EVENTS = Path(__file__).parents[2] / "events"
OUTPUTS = {"ItemsTable": "stack-Items-1", "CursorTable": "stack-Cursor-1"}


def sample(name: str) -> Any:
    return json.loads((EVENTS / f"{name}.json").read_text())


def test_an_event_is_json_or_a_file_with_it() -> None:
    assert read_event('{"queue": "q", "seq": 0}') == {"queue": "q", "seq": 0}
    assert read_event(str(EVENTS / "enqueue_sqs.json")) == sample("enqueue_sqs")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no event.*events/enqueue_direct_one.json"),
        ("  ", "no event"),
        ('{"queue": "q", "seq": 1, "seq": 2}', "the event: .*'seq' is given twice"),
        ('{"queue": "q", "seq": NaN}', "the event: .*NaN is not a JSON number"),
        ("{", "the event: not JSON"),
        ("nowhere.json", r"nowhere\.json: No such file"),
    ],
)
def test_i9_an_event_that_a_function_could_misread_is_refused(text: str, problem: str) -> None:
    with pytest.raises(StreamSortError, match=problem):
        read_event(text)


@pytest.mark.parametrize(
    ("name", "table"), [("process_cursor_stream", "stack-Cursor-1"), ("advance_items_stream", "stack-Items-1")]
)
def test_a_sample_of_a_stream_gets_the_name_of_the_stacks_own_table(name: str, table: str) -> None:
    fitted = with_names_of(OUTPUTS, sample(name))
    assert {record["eventSourceARN"].split("/")[1] for record in fitted["Records"]} == {table}
    for record in fitted["Records"]:
        record["eventSourceARN"] = ""
    plain = sample(name)
    for record in plain["Records"]:
        record["eventSourceARN"] = ""
    assert fitted == plain


@pytest.mark.parametrize("event", [None, [], {"Records": [None, {}]}, {"Records": 5}, sample("enqueue_sqs")])
def test_any_other_event_stays_as_it_is(event: Any) -> None:
    assert with_names_of(OUTPUTS, event) == event


def test_a_record_of_a_table_that_the_samples_do_not_name_stays_as_it_is() -> None:
    event = {"Records": [{"eventSourceARN": "arn:aws:dynamodb:eu-west-1:1:table/mine/stream/1"}]}
    assert with_names_of(OUTPUTS, event) == event


def test_the_errors_of_a_functions_start_are_found_in_the_log_of_the_local_aws() -> None:
    lines = [
        "Downloading something",
        "2026-11-16 09:00:00 ERROR [lambda] Warm worker execution error for f-1: Worker init failed: no module 'x'",
        "2026-11-16 09:00:01 ERROR [lambda] Warm worker execution error for f-2: Worker init failed: other",
        "2026-11-16 09:00:02 ERROR [lambda] Warm worker execution error for f-1: Worker process exited. stderr: a",
        "  second line",
        "2026-11-16 09:00:03 WARNING [sqs] something else",
    ]
    found = init_errors(lines, "f-1")
    assert [text for _, text in found] == [
        "ERROR the function did not start: no module 'x'",
        "ERROR the function did not start: Worker process exited. stderr: a\n  second line",
    ]
    at = time.mktime((2026, 11, 16, 9, 0, 0, 0, 0, -1))
    assert [milliseconds for milliseconds, _ in found] == [int(at * 1000), int((at + 2) * 1000)]


def test_a_demo_that_leaves_its_stack_up_says_so_and_how_to_end_it() -> None:
    kept = "\n".join(what_next("stream-sort", keep=True))
    assert "still up" in kept
    assert "stream-sort local status" in kept
    assert "stream-sort local down" in kept
    gone = "\n".join(what_next("stream-sort", keep=False))
    assert "local down" not in gone
    assert "stream-sort local up" in gone
