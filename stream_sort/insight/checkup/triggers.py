"""Does Lambda read the streams and queues that it should, and with what success; and is the sweep started."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from stream_sort.insight.checkup.aws import logs_of, map_again, restore, update
from stream_sort.insight.checkup.finding import Finding, fail, ok, warn
from stream_sort.program import program

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from stream_sort.insight.checkup.aws import Aws

AREA, SCHEDULES = "mappings", "schedules"
PARTIAL = "ReportBatchItemFailures"
TROUBLE = ("PROBLEM", "FAILED")
PASSING = {"Creating", "Enabling", "Updating"}
# Of every stream's mapping, and the default of the parameter Parallelization.
STREAM = {"StartingPosition": "TRIM_HORIZON", "BisectBatchOnFunctionError": True}
# Of those whose records nobody else looks for.
FOR_LONG = {"MaximumRetryAttempts": 1_000, "MaximumRecordAgeInSeconds": -1}
ENDLESS = -1
PARALLEL = "4"
# The names that SAM gives to the two schedules of SweepFunction, and what is not done without each.
RULES = {
    "SweepFunctionOften": "no gap policy acts, and nobody wakes consumers that sleep",
    "SweepFunctionSeldom": "nobody finds a queue whose last writer died",
}


class WantedMapping(NamedTuple):
    """A mapping that the template makes: who reads what, and how; a test compares it with the template.

    `switch` is the parameter that must be Enabled for it, `failures` what keeps the records that Lambda gives up on.
    """

    step: str
    source: str
    how: Mapping[str, Any]
    switch: str = ""
    failures: str = "StreamFailures"

    @property
    def is_stream(self) -> bool:
        """Return True if it reads a stream, not a queue."""
        return "StartingPosition" in self.how

    @property
    def label(self) -> str:
        """Return what it is called in a sentence."""
        return f"{self.step} on {'the stream of ' if self.is_stream else ''}{self.source}"

    def is_on(self, aws: Aws) -> bool:
        """Return True if the stack's parameters want it on."""
        return not self.switch or aws.parameter(self.switch, "Disabled") == "Enabled"

    def request(self, function: str | None, source: str | None, failures: str | None, aws: Aws) -> dict[str, Any]:
        """Return the CreateEventSourceMapping request that makes it; without EventSourceArn if there is no source."""
        made: dict[str, Any] = {"EventSourceArn": source} if source is not None else {}
        made |= {"FunctionName": function, "FunctionResponseTypes": [PARTIAL], **self.how}
        if self.is_stream:
            made.setdefault("ParallelizationFactor", int(aws.parameter("Parallelization", PARALLEL)))
            made |= {"DestinationConfig": {"OnFailure": {"Destination": failures}}} if failures is not None else {}
        return made if self.is_on(aws) else made | {"Enabled": False}


MAPPINGS = (
    WantedMapping("enqueue", "EnqueueQueue", {"BatchSize": 100, "MaximumBatchingWindowInSeconds": 1}),
    WantedMapping(
        "advance",
        "ItemsTable",
        STREAM | FOR_LONG | {"BatchSize": 500, "MaximumBatchingWindowInSeconds": 1},
        switch="AdvanceTrigger",
    ),
    WantedMapping(
        "process",
        "CursorTable",
        STREAM
        | {"BatchSize": 100, "MaximumBatchingWindowInSeconds": 0}
        | {"MaximumRetryAttempts": 20, "MaximumRecordAgeInSeconds": 3_600},
    ),
    WantedMapping("process", "RetryQueue", {"BatchSize": 10}),
)
KINESIS = WantedMapping(
    "enqueue",
    "KinesisSource",
    STREAM | FOR_LONG | {"BatchSize": 500, "MaximumBatchingWindowInSeconds": 1, "ParallelizationFactor": 10},
    failures="KinesisFailuresBucket",
)


def check_mapping(
    wanted: WantedMapping, request: Mapping[str, Any], found: Sequence[Mapping[str, Any]], aws: Aws
) -> Iterator[Finding]:
    """Check that a mapping is there, is as the stack wants it, and gets on.

    `request` is what would make it; `found` are all of its function.
    """
    source_arn = request.get("EventSourceArn")
    if source_arn is None:
        yield fail(AREA, f"{wanted.label}: there is nothing to read", "see the tables and streams above")
        return
    one = next((mapping for mapping in found if mapping.get("EventSourceArn") == source_arn), None)
    if one is None:
        yield _missing(wanted, request, found, aws)
        return
    wrong = [*_state(wanted, one, aws), *_answers(wanted, one, aws), *_result(wanted, one, aws)]
    wrong += _gives_up(wanted, one, aws)
    yield from wrong or [ok(AREA, f"{wanted.label} is {one.get('State')}: {_well(wanted, one, aws)}")]


def _well(wanted: WantedMapping, one: Mapping[str, Any], aws: Aws) -> str:
    return one.get("LastProcessingResult") or "idle" if wanted.is_on(aws) else f"as {wanted.switch} says"


def _missing(
    wanted: WantedMapping, request: Mapping[str, Any], found: Sequence[Mapping[str, Any]], aws: Aws
) -> Finding:
    """Find what is there in its place: a table that was restored, or had its stream switched off, has a new one."""
    table, stream, _ = request["EventSourceArn"].partition("/stream/")
    old = [mapping for mapping in found if stream and mapping.get("EventSourceArn", "").startswith(f"{table}/stream/")]
    if old:
        told = f"{wanted.label}: mapping {old[0]['UUID']} reads a stream that the table no longer has"
        away = aws.command("lambda", "delete-event-source-mapping", "--uuid", old[0]["UUID"])
        # To CloudFormation nothing has drifted: the mapping is as it was made.
        return fail(AREA, told, f"{away}; {map_again(request, aws)}{_unread(wanted)}")
    # The local CloudFormation reverts no drift.
    by_hand = aws.is_local and request["FunctionName"] is not None
    remedy = map_again(request, aws) if by_hand else restore(aws)
    return fail(AREA, f"{wanted.label}: there is no such event source mapping", remedy)


def _unread(wanted: WantedMapping) -> str:
    """Say what finds the records that are left in a stream which nobody reads any more; the sweep finds all others."""
    if not wanted.switch:
        return ""
    return f"; then {program()} audit --repair, for new queues of which it was not read"


def _state(wanted: WantedMapping, one: Mapping[str, Any], aws: Aws) -> Iterator[Finding]:
    state = one.get("State", "Enabled")
    switch = ("lambda", "update-event-source-mapping", "--uuid", one["UUID"])
    if not wanted.is_on(aws):
        if state == "Enabled":
            told = f"{wanted.label} is Enabled, though {wanted.switch} is Disabled: it runs and costs for nothing"
            yield warn(AREA, told, aws.command(*switch, "--no-enabled"))
        return
    if state in PASSING:
        yield warn(AREA, f"{wanted.label} is {state}", "wait, and look again")
    elif state != "Enabled":
        yield fail(AREA, f"{wanted.label} is {state}: nothing is read", aws.command(*switch, "--enabled"))


def _answers(wanted: WantedMapping, one: Mapping[str, Any], aws: Aws) -> Iterator[Finding]:
    if PARTIAL in one.get("FunctionResponseTypes", ()):
        return
    mend = aws.command(
        *("lambda", "update-event-source-mapping", "--uuid", one["UUID"], "--function-response-types", PARTIAL)
    )
    yield fail(AREA, f"{wanted.label} lacks {PARTIAL}: it ignores which record of a batch failed", mend)


def _result(wanted: WantedMapping, one: Mapping[str, Any], aws: Aws) -> Iterator[Finding]:
    said = one.get("LastProcessingResult") or ""
    if said.upper().startswith(TROUBLE):
        yield fail(AREA, f"{wanted.label}: {said}", logs_of(wanted.step, aws))


def _gives_up(wanted: WantedMapping, one: Mapping[str, Any], aws: Aws) -> Iterator[Finding]:
    """Find a mapping that gives up what nobody else looks for: too soon, too much at once, or without the records.

    Only a bucket keeps those of Kinesis, a queue gets their places.
    """
    mend = ("lambda", "update-event-source-mapping", "--uuid", one["UUID"])
    tries, wants = one.get("MaximumRetryAttempts"), wanted.how.get("MaximumRetryAttempts", 0)
    kept = one.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination", "")
    if wanted.failures == KINESIS.failures and ":s3:" not in kept:
        yield fail(AREA, f"{wanted.label} gives records up without keeping them, after {tries} tries", update(aws))
    elif tries is not None and ENDLESS < tries < wants:
        told = f"{wanted.label} gives records up after {tries} tries, not {wants:,}: a short outage is enough"
        yield warn(AREA, told, aws.command(*mend, "--maximum-retry-attempts", str(wants)))
    age, longest = one.get("MaximumRecordAgeInSeconds", ENDLESS), wanted.how.get("MaximumRecordAgeInSeconds", 0)
    if age != ENDLESS and (longest == ENDLESS or age < longest):
        wants = "when they leave the stream" if longest == ENDLESS else f"{longest:,}"
        told = f"{wanted.label} gives records up after {age} seconds, not {wants}: a short outage is enough"
        yield warn(AREA, told, aws.command(*mend, "--maximum-record-age-in-seconds", str(longest)))
    if wanted.is_stream and one.get("BisectBatchOnFunctionError") is False:
        told = f"{wanted.label} gives up a whole batch for one record, because it does not bisect"
        yield warn(AREA, told, aws.command(*mend, "--bisect-batch-on-function-error"))


class Rule(NamedTuple):
    """A rule by its name in the template, as EventBridge has it (None if it is gone), and the ARNs that it calls."""

    name: str
    found: Mapping[str, Any] | None
    targets: Collection[str] = ()


def check_rule(rule: Rule, function: str | None, aws: Aws) -> Iterator[Finding]:
    """Check that a rule is on and starts the function of that ARN."""
    name, found = rule.name, rule.found
    without = RULES[name]
    if found is None:
        yield fail(SCHEDULES, f"the rule {name} is gone: {without}", restore(aws))
        return
    told = f"{name} ({found.get('ScheduleExpression', 'no schedule')})"
    if not str(found.get("State", "")).startswith("ENABLED"):
        enable = aws.command("events", "enable-rule", "--name", found["Name"])
        yield fail(SCHEDULES, f"{told} is {found.get('State')}: {without}", enable)
    elif function is not None and function not in rule.targets:
        yield fail(SCHEDULES, f"{told} does not start the sweep: {without}", restore(aws))
    else:
        yield ok(SCHEDULES, f"{told} is ENABLED and starts the sweep")
