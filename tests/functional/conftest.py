"""Functions on tables of moto's, with real payloads from events/ and faults on command."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ReadTimeoutError
from moto import mock_aws

from stream_sort import StreamSorter
from stream_sort.aws_lambda.telemetry import Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EVENTS = Path(__file__).parents[2] / "events"
# moto's conditional writes are not atomic between threads; and a fault is one that stays, so why wait.
TUNING: dict[str, Any] = {"in_flight": 1, "deadline": 0.02}


@dataclass
class Table:
    """A client of DynamoDB that counts its calls, and fails those that are to fail."""

    client: Any
    calls: list[str] = field(default_factory=list)
    faults: list[tuple[str, str]] = field(default_factory=list)

    def fail(self, operation: str, text: str) -> None:
        """From now on, time out when this operation's request holds this text."""
        self.faults.append((operation, text))

    def on_call(self, model: Any, params: dict[str, Any], **_: Any) -> None:
        self.calls.append(model.name)
        body = params["body"].decode() if isinstance(params["body"], bytes) else params["body"]
        if any(operation == model.name and text in body for operation, text in self.faults):
            raise ReadTimeoutError(endpoint_url="https://dynamodb")


@dataclass(frozen=True)
class Context:
    """What Lambda tells of an invocation."""

    aws_request_id: str = "c6af9ac6-7b61-11e6-9a41-93e8deadbeef"

    def get_remaining_time_in_millis(self) -> int:
        return 30_000


@dataclass
class LittleTime:
    """The context of a run that has so many seconds, of which each request to the tables takes one."""

    dynamo: Table
    seconds: float
    aws_request_id: str = "c6af9ac6"

    def __post_init__(self) -> None:
        self.before = len(self.dynamo.calls)

    def get_remaining_time_in_millis(self) -> int:
        return round(1000 * (self.seconds - (len(self.dynamo.calls) - self.before)))


@pytest.fixture
def dynamo() -> Iterator[Table]:
    with mock_aws():
        client = boto3.client("dynamodb", region_name="eu-west-1", aws_access_key_id="x", aws_secret_access_key="y")
        StreamSorter(client=client).create_tables()
        table = Table(client)
        client.meta.events.register("before-call.dynamodb", table.on_call)
        yield table
        client.close()


@pytest.fixture
def sorter(dynamo: Table) -> StreamSorter:
    return StreamSorter(client=dynamo.client, **TUNING)


@pytest.fixture
def context() -> Context:
    return Context()


@pytest.fixture
def sample() -> Callable[[str], Any]:
    """Loads a payload from events/."""
    return lambda name: json.loads((EVENTS / f"{name}.json").read_text())


# Powertools keeps a logger for each service, with the stdout it found first: that must outlive all tests.
@pytest.fixture(scope="session")
def telemetries() -> dict[str, Telemetry]:
    return {step: Telemetry(step) for step in ("enqueue", "advance", "process", "sweep")}


class Told:
    """What the functions logged and measured since the last time."""

    def __init__(self, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> None:
        self._caplog = caplog
        self._capsys = capsys

    def metrics(self) -> dict[str, float]:
        """All values by name; one blob a flush."""
        lines = self._capsys.readouterr().out.splitlines()
        blobs = [json.loads(line) for line in lines if '"_aws"' in line]
        return {
            metric["Name"]: sum(blob[metric["Name"]])
            for blob in blobs
            for metric in blob["_aws"]["CloudWatchMetrics"][0]["Metrics"]
        }

    def logs(self, level: int = logging.INFO) -> list[dict[str, Any]]:
        return [
            vars(record) | {"text": record.getMessage()} for record in self._caplog.records if record.levelno >= level
        ]

    def everything(self) -> str:
        return self._capsys.readouterr().out + repr(self.logs())


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> Told:
    return Told(caplog, capsys)
