"""What functions log, as people read it: one line an event, and nothing that only machines read."""

from __future__ import annotations

import json
from typing import Any

from stream_sort.local.log_keeper import PAGE, all_events
from stream_sort.local.readable_logs import LineKind, LogLine, readable


def shown(*texts: str, step: str = "process") -> list[tuple[str, str]]:
    return [(event.kind.name, event.text) for event in readable(LogLine(1, step, text) for text in texts)]


def record(level: str, message: str, **facts: Any) -> str:
    told = {"level": level, "location": "_tell:1", "message": message, "timestamp": "2026", "service": "process"}
    return json.dumps({**told, "request_id": "f1", **facts})


def test_what_lambda_and_the_metrics_write_is_left_out() -> None:
    metrics = json.dumps({"_aws": {"CloudWatchMetrics": []}, "service": "process", "StoreRequests": [1.0]})
    report = "REPORT RequestId: f1\tDuration: 2 ms\tBilled Duration: 2 ms"
    assert shown("START RequestId: f1 Version: $LATEST", metrics, "END RequestId: f1", report, "") == []


def test_prints_stand_as_they_were_printed() -> None:
    assert shown("got ada", "STARTing up", '{"my": "json"}', "[1]", "{not json", "  indented") == [
        ("OWN", "got ada"),
        ("OWN", "STARTing up"),
        ("OWN", '{"my": "json"}'),
        ("OWN", "[1]"),
        ("OWN", "{not json"),
        ("OWN", "  indented"),
    ]


def test_a_record_is_its_message_its_error_and_its_facts() -> None:
    parked = record("ERROR", "queue parked", queue="bob", delivered=0, ended="parked", seq=1, error="ValueError: no")
    assert shown(parked, record("INFO", "queue served", queue="ada", delivered=2)) == [
        ("ERROR", "queue parked: ValueError: no (queue bob, seq 1)"),
        ("NOTE", "queue served (queue ada, delivered 2)"),
    ]
    assert shown(record("WARNING", "record ignored", reason="no queue"))[0][0] == "WARNING"


def test_a_gap_is_told_by_its_seqs_and_seq_0_is_a_seq() -> None:
    one = record("INFO", "gap found", **{"queue": "bob", "from": 0, "to": 0, "length": 1, "age": 3.214, "gap": "found"})
    many = record("WARNING", "gap closed", **{"queue": "bob", "from": 20, "to": 29, "length": 10, "age": 0, "gap": "x"})
    parked = record("ERROR", "queue parked", queue="bob", seq=0)
    assert [text for _, text in shown(one, many, parked)] == [
        "gap found (queue bob, seq 0, age 3 s)",
        "gap closed (queue bob, seqs 20 to 29, age 0 s)",
        "queue parked (queue bob, seq 0)",
    ]


def test_the_place_in_the_users_code_stands_by_the_error_and_its_traceback_is_left_to_raw() -> None:
    facts = {"queue": "w", "error": "KeyError: 'k1'", "at": "mine.py:6 in helper", "traceback": "  File ..."}
    assert shown(record("ERROR", "queue parked", **facts)) == [
        ("ERROR", "queue parked: KeyError: 'k1' at mine.py:6 in helper (queue w)")
    ]
    assert shown(record("INFO", "paid", service="billing", at=3)) == [("OWN", "paid (at 3)")]


def test_what_the_platform_says_of_a_run_that_ended_badly_is_an_error() -> None:
    died = "Worker process died"
    timed_out = "2026-07-01T10:00:00.000Z f1 Task timed out after 3.00 seconds"
    assert shown(died, "Task timed out after 60.00 seconds", timed_out) == [
        ("ERROR", died),
        ("ERROR", "Task timed out after 60.00 seconds"),
        ("ERROR", "Task timed out after 3.00 seconds"),
    ]
    assert shown("my Task timed out after all", "the Worker process died") == [
        ("OWN", "my Task timed out after all"),
        ("OWN", "the Worker process died"),
    ]


def test_records_of_the_users_own_logger_are_the_users() -> None:
    assert shown(record("INFO", "paid", service="billing", sum=3)) == [("OWN", "paid (sum 3)")]
    assert shown(record("ERROR", "not paid", service="billing")) == [("ERROR", "not paid")]


def test_a_traceback_is_one_line_that_says_what_and_where() -> None:
    frames = ['  File "/var/task/app.py", line 3, in handler', '  File "/var/task/mine.py", line 9, in pay', "    x[0]"]
    trace = ["Traceback (most recent call last):", *frames, "    ~^^^", "KeyError: 0"]
    assert shown("before", *trace, "after") == [
        ("OWN", "before"),
        ("ERROR", "KeyError: 0 (mine.py:9)"),
        ("OWN", "after"),
    ]
    assert shown(*trace[:3]) == [("ERROR", 'File "/var/task/mine.py", line 9, in pay (mine.py:9)')]
    logged = record("ERROR", "it failed", exception="\n".join(trace), exception_name="KeyError", stack_trace={"a": 1})
    assert shown(logged) == [("ERROR", "it failed: KeyError: 0 (mine.py:9)")]


def test_a_sweep_that_found_nothing_to_do_is_no_news() -> None:
    idle = {"looked_at": 5, "advanced": 0, "skipped": 0, "failed": 0, "complete": True}
    assert shown(record("INFO", "swept", **idle), step="sweep") == []
    assert shown(record("INFO", "swept", **idle | {"skipped": 1}), step="sweep") == [
        ("NOTE", "swept (looked_at 5, skipped 1, complete true)")
    ]


def test_a_function_that_did_not_start_is_one_line() -> None:
    assert shown("ERROR the function did not start: ValueError: x\n  File ...") == [
        (LineKind.ERROR.name, "the function did not start: ValueError: x")
    ]


def test_logs_of_more_than_one_page_are_read_to_their_end() -> None:
    stored = [{"timestamp": number // 3, "message": str(number)} for number in range(2 * PAGE + 7)]

    def ask(start: int) -> list[dict[str, Any]]:
        return [event for event in stored if event["timestamp"] >= start][:PAGE]

    assert list(all_events(ask, 0)) == stored
    assert list(all_events(ask, stored[-1]["timestamp"])) == [event for event in stored if event["timestamp"] == 6668]
