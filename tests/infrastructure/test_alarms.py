"""Alarms and the dashboard watch what exists: metrics that the code publishes, resources of this template."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from stream_sort import StreamSorter
from stream_sort.aws_lambda import telemetry
from stream_sort.cli.lazy_group import COMMANDS, load

ROOT = Path(__file__).parents[2]
METRICS = {name: value for name, value in vars(telemetry).items() if name.isupper() and isinstance(value, str)}
OF_AWS = {
    "AWS/Lambda": {"IteratorAge", "Errors", "Throttles", "DestinationDeliveryFailures"},
    "AWS/SQS": {"ApproximateNumberOfMessagesVisible"},
    "AWS/DynamoDB": {"WriteThrottleEvents"},
}
# Commands with commands of their own.
GROUPS = ("parked", "dead", "dead-letters", "late", "consumers")
STEPS = ("enqueue", "advance", "process", "sweep")
WATCHED = {
    "IteratorAge",
    "OldestGapAgeSeconds",
    "QueuesFailed",
    "QueuesParked",
    "DeadLetters",
    "Rejected",
    "Conflicts",
    "ConsumerLag",
    "ApproximateNumberOfMessagesVisible",
    "DestinationDeliveryFailures",
    "Errors",
    "Throttles",
    "WriteThrottleEvents",
}


def published_by(step: str) -> set[str]:
    """The metrics that a step's own code names."""
    source = (ROOT / "stream_sort" / "aws_lambda" / f"{step}.py").read_text()
    return {metric for name, metric in METRICS.items() if re.search(rf"\b{name}\b", source)}


NAMESPACE = "StreamSort/${AWS::StackName}"


@pytest.fixture(scope="module")
def alarms(resources: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: one["Properties"] for name, one in resources.items() if one["Type"] == "AWS::CloudWatch::Alarm"}


@pytest.mark.parametrize("step", STEPS)
def test_a_function_publishes_where_its_stacks_alarms_look(step: str, resources: dict[str, Any]) -> None:
    told = resources[f"{step.title()}Function"]["Properties"]["Environment"]["Variables"]
    assert told["POWERTOOLS_METRICS_NAMESPACE"] == {"Fn::Sub": NAMESPACE}


def test_everything_that_can_go_wrong_has_an_alarm(alarms: dict[str, dict[str, Any]]) -> None:
    assert {alarm["MetricName"] for alarm in alarms.values()} == WATCHED


def test_every_alarm_watches_a_metric_that_somebody_publishes(alarms: dict[str, dict[str, Any]]) -> None:
    for name, alarm in alarms.items():
        (dimension,) = alarm["Dimensions"]
        if alarm["Namespace"] == {"Fn::Sub": NAMESPACE}:
            assert dimension["Name"] == "service", name
            assert alarm["MetricName"] in published_by(dimension["Value"]), name
        else:
            assert alarm["MetricName"] in OF_AWS[alarm["Namespace"]], name


def test_every_function_table_and_dead_letter_queue_is_watched(alarms: dict[str, dict[str, Any]]) -> None:
    seen = {(alarm["MetricName"], json.dumps(alarm["Dimensions"][0]["Value"])) for alarm in alarms.values()}
    for step in STEPS:
        for metric in ("Errors", "Throttles"):
            assert (metric, json.dumps({"Ref": f"{step.title()}Function"})) in seen
    for table in ("ItemsTable", "CursorTable", "ControlTable"):
        assert ("WriteThrottleEvents", json.dumps({"Ref": table})) in seen
    for queue in ("EnqueueDeadLetters", "RetryDeadLetters", "StreamFailures", "KinesisFailures"):
        name = json.dumps({"Fn::GetAtt": [queue, "QueueName"]})
        assert ("ApproximateNumberOfMessagesVisible", name) in seen


@pytest.mark.parametrize(
    ("metric", "condition", "watched"),
    [
        ("IteratorAge", None, {"Ref": "ProcessFunction"}),
        ("IteratorAge", "WithAdvance", {"Ref": "AdvanceFunction"}),
        ("IteratorAge", "FromKinesis", {"Ref": "EnqueueFunction"}),
        ("Rejected", "WithAdvance", "advance"),
    ],
)
def test_every_stream_is_watched_where_it_is_read(
    metric: str, condition: str | None, watched: Any, resources: dict[str, Any]
) -> None:
    alarms = [one for one in resources.values() if one["Type"] == "AWS::CloudWatch::Alarm"]
    found = [(one["Properties"]["MetricName"], one.get("Condition")) for one in alarms if _watches(one, watched)]
    assert (metric, condition) in found


def _watches(alarm: dict[str, Any], value: Any) -> bool:
    (dimension,) = alarm["Properties"]["Dimensions"]
    return bool(dimension["Value"] == value)


def test_alarms_go_to_the_topic_if_there_is_one_and_say_what_to_do(alarms: dict[str, dict[str, Any]]) -> None:
    for name, alarm in alarms.items():
        told = {"Fn::If": ["WithAlarmTopic", [{"Ref": "AlarmTopic"}], {"Ref": "AWS::NoValue"}]}
        assert alarm["AlarmActions"] == alarm["OKActions"] == told, name
        assert alarm["AlarmDescription"], name
        # Without the figures of a sweep nobody knows whether things are better.
        is_swept = alarm["Dimensions"][0]["Value"] == "sweep"
        assert alarm["TreatMissingData"] == ("ignore" if is_swept else "notBreaching"), name


def test_alarms_name_commands_that_there_are_and_no_python(alarms: dict[str, dict[str, Any]]) -> None:
    for name, alarm in alarms.items():
        told = alarm["AlarmDescription"]
        text = told["Fn::Sub"] if isinstance(told, dict) else told
        named = re.findall(r"stream-sort ([a-z-]+)( [a-z]+)?", text)
        assert all(command in COMMANDS for command, _ in named), name
        for command, inner in named:
            assert command not in GROUPS or inner.strip() in load(command).commands, name
        assert named or alarm["MetricName"] == "Throttles", name
        assert not re.search(r"\w\(", text), name
        # More than that is cut by CloudWatch.
        assert len(text) <= 1024, name


def test_no_alarm_says_that_nothing_is_lost_where_only_kinesis_has_it(alarms: dict[str, dict[str, Any]]) -> None:
    told = alarms["KinesisFailuresAlarm"]["AlarmDescription"]["Fn::Sub"]
    assert "in no queue" in told
    assert "clears after 14 days" in told
    assert "dead-letters redrive" in told
    told = alarms["StreamFailuresAlarm"]["AlarmDescription"]["Fn::Sub"]
    assert "tables' streams" in told


def test_an_alarm_of_conflicts_shows_the_message_that_is_kept(alarms: dict[str, dict[str, Any]]) -> None:
    told = alarms["ConflictsAlarm"]["AlarmDescription"]["Fn::Sub"]
    command = re.search(r"stream-sort (read QUEUE .*) --stack", told)
    assert command is not None
    values = {"QUEUE": "q", "SEQ-1": "1", "SEQ": "2"}
    _, queue, *options = [values.get(word, word) for word in command[1].split()]
    sorter = StreamSorter.in_memory()
    sorter.put_many({"queue": queue, "seq": seq} for seq in range(4))
    given = dict(zip(options[::2], map(int, options[1::2]), strict=True))
    shown = sorter.read(queue, after=given["--after"], through=given.get("--through"))
    assert [message["seq"] for message in shown] == [2]


def test_an_alarm_of_a_gap_names_what_loses_nothing_first(alarms: dict[str, dict[str, Any]]) -> None:
    told = alarms["GapAgeTooHighAlarm"]["AlarmDescription"]["Fn::Sub"]
    named = ["explain QUEUE", "dead-letters list", "withdraw QUEUE SEQ", "skip QUEUE SEQS"]
    places = [told.find(one) for one in named]
    assert -1 not in places
    assert places == sorted(places)


def test_alarms_of_throttles_say_who_has_to_act(alarms: dict[str, dict[str, Any]]) -> None:
    told = alarms["EnqueueThrottlesAlarm"]["AlarmDescription"]
    assert "HTTP callers and synchronous invokes are refused" in told
    assert "EnqueueDeadLetters" in told
    assert "audit --repair" in alarms["AdvanceThrottlesAlarm"]["AlarmDescription"]["Fn::Sub"]


def test_no_alarm_has_anything_purged(alarms: dict[str, dict[str, Any]]) -> None:
    assert "purge" not in json.dumps(alarms).lower()


def test_the_dashboard_shows_metrics_that_somebody_publishes(resources: dict[str, Any]) -> None:
    body = json.loads(resources["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"])
    for widget in body["widgets"]:
        for namespace, metric, dimension, value in widget["properties"]["metrics"]:
            if namespace == NAMESPACE:
                assert dimension == "service"
                assert metric in published_by(value), f"{metric} of {value}"
            else:
                assert metric in OF_AWS[namespace]
                (resource,) = re.findall(r"\$\{(\w+)", value)
                assert resource in resources
