"""Settings in, a sink out. Only the chosen sink's module is imported and only its client made: cold starts count."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from stream_sort.errors import SettingsError, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.model.batch import Batch
    from stream_sort.settings import SinkSettings

ARN = r"arn:aws[a-z-]*:"
REGION = r"([a-z]{2}(?:-[a-z]+)+-\d+)"
# Where a target names its region: its ARN, or the host of its queue.
REGIONS = re.compile(
    rf"{ARN}[a-z]+:{REGION}:|https?://(?:[\w.-]+\.)?sqs(?:-fips)?\.{REGION}\.|https?://{REGION}\.queue\."
)


@dataclass(frozen=True, slots=True)
class SinkKind:
    """One kind of sink: where its code is, which AWS service it talks to, what its target looks like.

    `names_sender`: its target drops repeats, so its messages say who sent them.
    """

    module: str
    factory: str
    service: str
    target: str
    target_is: str
    names_sender: bool = False


SINKS = {
    "log": SinkKind("log", "LogSink", "", r"", "empty: the log sink has no target"),
    "sqs-fifo": SinkKind(
        "fifo",
        "sqs_fifo_sink",
        "sqs",
        r"https?://\S+/\d+/[\w-]+\.fifo",
        "the URL of a queue whose name ends in .fifo",
        names_sender=True,
    ),
    "sns-fifo": SinkKind(
        "fifo",
        "sns_fifo_sink",
        "sns",
        ARN + r"sns:[^:\s]+:\d+:[\w-]+\.fifo",
        "the ARN of a topic that ends in .fifo",
        names_sender=True,
    ),
    "kinesis": SinkKind(
        "kinesis",
        "KinesisSink",
        "kinesis",
        rf"[\w.-]{{1,128}}|{ARN}kinesis:[^:\s]+:\d+:stream/[\w.-]+",
        "the name or ARN of a data stream",
    ),
    "eventbridge": SinkKind(
        "eventbridge",
        "EventBridgeSink",
        "events",
        rf"[/\w.-]{{1,256}}|{ARN}events:[^:\s]+:\d+:event-bus/[/\w.-]+",
        "the name or ARN of an event bus, 'default' for the account's own",
    ),
    "lambda": SinkKind(
        "lambda_invoke",
        "LambdaSink",
        "lambda",
        rf"(?:(?:{ARN}lambda:[^:\s]+:)?\d+:function:)?[\w-]{{1,140}}(?::[\w$-]+)?",
        "the name or ARN of a function, with or without an alias",
    ),
}


def make_sink(settings: SinkSettings, client: Any = None) -> Callable[[Batch], int | None]:
    """Make the sink that the settings name; `client` is a boto3 client of its service, made when absent."""
    kind = SINKS.get(settings.sink)
    if kind is None:
        raise SettingsError(f"sink is {shown(settings.sink)}; there are {', '.join(SINKS)}")
    target = settings.sink_target
    if not re.fullmatch(kind.target, target, re.ASCII):
        raise SettingsError(
            f"sink_target is {shown(target, 200)}; for the sink {settings.sink!r} it must be {kind.target_is} "
            f"(the sinks are {', '.join(SINKS)})"
        )
    factory = getattr(import_module(f"stream_sort.sinks.{kind.module}"), kind.factory)
    given = [target, client or make_client(kind.service, region=region_of(target))] if kind.service else []
    return cast("Callable[[Batch], int | None]", factory(*given, *[settings.sender] * kind.names_sender))


def region_of(target: str) -> str | None:
    """Return the region that a target's ARN or URL names; None if it names none."""
    found = REGIONS.match(target)
    return next(filter(None, found.groups()), None) if found else None


def make_client(service: str, *, region: str | None = None, endpoint_url: str | None = None) -> Any:
    """Make the client of a sink, in the region of the environment; AWS_ENDPOINT_URL is honoured by the SDK."""
    from stream_sort.aws.clients import service_client  # noqa: PLC0415  # the log sink needs no SDK

    config: dict[str, Any] = {"read_timeout": 10, "retries": {"mode": "standard", "total_max_attempts": 3}}
    if service == "lambda":
        # A function may run 15 minutes. Asking again after a time-out or a broken connection would start it a
        # second time while the first still runs, with the same messages: the consumer's own retry decides that.
        once = {"mode": "standard", "total_max_attempts": 1}
        config = {"read_timeout": 910, "tcp_keepalive": True, "retries": once}
    return service_client(service, region=region, endpoint_url=endpoint_url, connect_timeout=2, **config)
