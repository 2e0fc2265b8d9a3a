"""Does Lambda read the streams and queues that it should, and with what success."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from stream_sort.cli.checkup.finding import Finding, fail, ok, warn
from stream_sort.cli.checkup.functions import DEPLOY, logs_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stream_sort.cli.checkup.asking import Aws

AREA = "mappings"
PARTIAL = "ReportBatchItemFailures"
TROUBLE = ("PROBLEM", "FAILED")
PASSING = {"Creating", "Enabling", "Updating"}


class Wanted(NamedTuple):
    """A mapping that the template makes: who reads what. `switch` is the parameter that must be Enabled for it."""

    step: str
    source: str
    is_stream: bool
    switch: str = ""

    @property
    def told(self) -> str:
        """How it is named in a sentence."""
        return f"{self.step} on {'the stream of ' if self.is_stream else ''}{self.source}"


MAPPINGS = (
    Wanted("enqueue", "EnqueueQueue", is_stream=False),
    Wanted("advance", "ItemsTable", is_stream=True, switch="AdvanceTrigger"),
    Wanted("process", "CursorTable", is_stream=True),
    Wanted("process", "RetryQueue", is_stream=False),
)
KINESIS = Wanted("enqueue", "KinesisSource", is_stream=True)


def check_mapping(
    wanted: Wanted, source_arn: str | None, found: Sequence[Mapping[str, Any]], aws: Aws
) -> Iterator[Finding]:
    """Whether a mapping is there, is on, and gets on; `found` are all of its function. No ARN: there is no source."""
    if source_arn is None:
        yield fail(AREA, f"{wanted.told}: there is nothing to read", "see what is said of tables and streams, above")
        return
    one = next((mapping for mapping in found if mapping.get("EventSourceArn") == source_arn), None)
    if one is None:
        yield fail(AREA, f"{wanted.told}: {_instead(source_arn, found)}", DEPLOY)
        return
    wrong = [*_state(wanted, one, aws), *_answers(wanted, one, aws), *_result(wanted, one, aws)]
    yield from wrong or [ok(AREA, f"{wanted.told} is {one.get('State')}: {one.get('LastProcessingResult') or 'idle'}")]


def _instead(source_arn: str, found: Sequence[Mapping[str, Any]]) -> str:
    """What is there in its place: a table that was restored, or whose stream was switched off and on, has a new one."""
    table, stream, _ = source_arn.partition("/stream/")
    old = [mapping for mapping in found if stream and mapping.get("EventSourceArn", "").startswith(f"{table}/stream/")]
    if old:
        return f"mapping {old[0]['UUID']} reads a stream that the table no longer has"
    return "there is no such event source mapping"


def _state(wanted: Wanted, one: Mapping[str, Any], aws: Aws) -> Iterator[Finding]:
    state = one.get("State", "Enabled")
    if state == "Enabled" or (wanted.switch and aws.parameter(wanted.switch, "Disabled") == "Disabled"):
        return
    if state in PASSING:
        yield warn(AREA, f"{wanted.told} is {state}", "wait, and look again")
        return
    enable = aws.command("lambda", "update-event-source-mapping", "--uuid", one["UUID"], "--enabled")
    yield fail(AREA, f"{wanted.told} is {state}: nothing is read", enable)


def _answers(wanted: Wanted, one: Mapping[str, Any], aws: Aws) -> Iterator[Finding]:
    if PARTIAL in one.get("FunctionResponseTypes", ()):
        return
    mend = aws.command(
        *("lambda", "update-event-source-mapping", "--uuid", one["UUID"], "--function-response-types", PARTIAL)
    )
    yield fail(AREA, f"{wanted.told} lacks {PARTIAL}: what one record's failure says is not heard", mend)


def _result(wanted: Wanted, one: Mapping[str, Any], aws: Aws) -> Iterator[Finding]:
    said = one.get("LastProcessingResult") or ""
    if said.upper().startswith(TROUBLE):
        yield fail(AREA, f"{wanted.told}: {said}", logs_of(wanted.step, aws))
