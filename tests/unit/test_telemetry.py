from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from stream_sort.aws_lambda import telemetry as names
from stream_sort.aws_lambda.telemetry import Telemetry

# Powertools keeps the logger of each step, with the stdout that it found first: each test has a step of its own.


def blobs(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    lines = map(json.loads, capsys.readouterr().out.splitlines())
    return [line for line in lines if "_aws" in line]


def test_counts_and_measures_are_published_in_one_blob(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry = Telemetry("counting")
    telemetry.count(names.LATE)
    telemetry.count(names.LATE, 2)
    telemetry.measure(names.OLDEST_GAP_AGE_SECONDS, 0.0, "Seconds")
    telemetry.measure(names.CONSUMER_LAG, 3)
    telemetry.measure(names.CONSUMER_LAG, 4)
    telemetry.flush()
    (blob,) = blobs(capsys)
    (published,) = blob["_aws"]["CloudWatchMetrics"]
    assert (published["Namespace"], published["Dimensions"], blob["service"]) == (
        "StreamSort",
        [["service"]],
        "counting",
    )
    assert {one["Name"]: (one["Unit"], blob[one["Name"]]) for one in published["Metrics"]} == {
        "Late": ("Count", [3.0]),
        "OldestGapAgeSeconds": ("Seconds", [0.0]),
        "ConsumerLag": ("Count", [3.0, 4.0]),
    }


def test_what_was_published_is_not_published_again_and_nothing_is_no_blob(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry = Telemetry("publishing")
    telemetry.flush()
    telemetry.count(names.LATE, 0)
    telemetry.measure(names.CONSUMER_LAG, float("nan"))
    telemetry.flush()
    assert blobs(capsys) == []
    telemetry.count(names.LATE)
    telemetry.flush()
    telemetry.flush()
    assert len(blobs(capsys)) == 1


def test_metrics_that_cannot_be_published_are_logged_and_fail_nothing(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    telemetry = Telemetry("failing")
    telemetry.measure(names.CONSUMER_LAG, 1, "Parsecs")
    telemetry.flush()
    assert [record.getMessage() for record in caplog.records] == ["metrics were not published"]
    telemetry.count(names.LATE)
    telemetry.flush()
    assert len(blobs(capsys)) == 1


def test_an_invocation_marks_its_logs_and_publishes_however_it_ends(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry = Telemetry("invoked")

    def invocation() -> None:
        with telemetry.invocation(SimpleNamespace(aws_request_id="request-1")):
            telemetry.logger.info("hello", queue="q")
            telemetry.logger.debug("a payload")
            telemetry.count(names.LATE)
            raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        invocation()
    line, blob = map(json.loads, capsys.readouterr().out.splitlines())
    assert {"level": "INFO", "request_id": "request-1", "queue": "q"}.items() <= line.items()
    assert line["service"] == blob["service"]
    assert blob["Late"] == [1.0]


def test_a_telemetry_of_another_step_does_not_share_its_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry = Telemetry("one")
    other = Telemetry("other")
    telemetry.count(names.LATE)
    other.count(names.DUPLICATES)
    telemetry.flush()
    other.flush()
    assert [(blob.get("Late"), blob.get("Duplicates")) for blob in blobs(capsys)] == [([1.0], None), (None, [1.0])]


@pytest.mark.parametrize(("switch", "traced"), [("on", True), ("off", False), ("", False)])
def test_tracing_is_off_unless_it_is_switched_on(monkeypatch: pytest.MonkeyPatch, switch: str, traced: bool) -> None:  # noqa: FBT001
    monkeypatch.setenv("STREAM_SORT_TRACING", switch)
    assert (Telemetry("traced").tracer is not None) is traced


def test_tracing_is_off_without_the_sdk_of_x_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAM_SORT_TRACING", "on")
    monkeypatch.setattr("stream_sort.aws_lambda.telemetry.find_spec", lambda _: None)
    assert Telemetry("traced").tracer is None
