"""The whole checkup: tables, then the stack around them if one is named, then the queues."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from stream_sort import __version__
from stream_sort.errors import StoreUnavailable
from stream_sort.insight.checkup import functions, resources, triggers
from stream_sort.insight.checkup.aws import Unanswered
from stream_sort.insight.checkup.finding import Checkup, Finding, guarded, not_checked
from stream_sort.insight.checkup.queues import check_consumers, check_queues
from stream_sort.insight.checkup.resources import Resources
from stream_sort.insight.checkup.standing import read_standings
from stream_sort.insight.checkup.tables import Table, check_stream, check_table

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from stream_sort.insight.checkup.aws import Aws
    from stream_sort.insight.sources import Sources

# By name in the template; None: there is no such thing, missing: nobody could see.
Arns = dict[str, str | None]
# Keys are all that advance needs, and every stream has them.
ANY_VIEW = ""
NO_STACK = "functions, versions, dead letters, mappings, roles, schedules, alarms: no stack is named; give --stack NAME"


@dataclass(frozen=True, slots=True)
class CheckupTerms:
    """Which queues to look at, and how many seconds a gap may be open."""

    pattern: str = "*"
    old_gap: float = 3_600.0


@dataclass(frozen=True, slots=True)
class Examined:
    """What is examined.

    `tables` are the CreateTable requests of the tables as they should be, by kind: items, cursor and control, if there
    is one; `optional` their indexes that may be missing. `describe` returns what DescribeTable answers, None if there
    is no such table; StoreUnavailable if AWS is out of reach. `sources` opens the tables.
    """

    aws: Aws
    tables: Mapping[str, Mapping[str, Any]]
    optional: Collection[str]
    describe: Callable[[str], Mapping[str, Any] | None]
    sources: Callable[[], Sources]


def examine(examined: Examined, terms: CheckupTerms) -> Checkup:
    """Check everything that is there; raises only if AWS is out of reach or knows nobody here."""
    tables: dict[str, Table] = {}
    found = [*_tables(examined, tables)]
    if examined.aws.stack:
        found += guarded("stack", partial(_stack, examined.aws, tables))
    else:
        found.append(not_checked("stack", NO_STACK))
    if any(table.found is None for table in tables.values()):
        found.append(not_checked("queues", "a table is missing, see above"))
    else:
        found += guarded("queues", partial(_queues, examined, terms))
    return Checkup(tuple(found))


def _tables(examined: Examined, tables: dict[str, Table]) -> Iterator[Finding]:
    for kind in examined.tables:
        yield from guarded("tables", partial(_table, examined, kind, tables), StoreUnavailable)
    if "control" not in examined.tables:
        yield not_checked("tables", "no control table is named; give --control-table")


def _table(examined: Examined, kind: str, tables: dict[str, Table]) -> Iterator[Finding]:
    aws, request = examined.aws, examined.tables[kind]
    there = examined.describe(request["TableName"])
    recovery = "not known" if there is None else _recovery(aws, request["TableName"])
    table = tables[kind] = Table(kind, request, there, recovery, examined.optional)
    view = request.get("StreamSpecification", {}).get("StreamViewType")
    if kind == "items" and aws.stack:
        view = ANY_VIEW
    yield from check_table(table, aws)
    yield from check_stream(table, view, aws)


def _recovery(aws: Aws, name: str) -> str:
    try:
        answer = aws.ask("dynamodb", "describe_continuous_backups", TableName=name) or {}
    except Unanswered:
        return "not known"
    told = answer.get("ContinuousBackupsDescription", {}).get("PointInTimeRecoveryDescription", {})
    return "on" if told.get("PointInTimeRecoveryStatus") == "ENABLED" else "off"


def _queues(examined: Examined, terms: CheckupTerms) -> Iterator[Finding]:
    found, command = read_standings(examined.sources(), terms.pattern, terms.old_gap), examined.aws.stream_sort
    yield from guarded("queues", partial(check_queues, found, terms.old_gap, command))
    yield from guarded("consumers", partial(check_consumers, found, command))


def _stack(aws: Aws, tables: Mapping[str, Table]) -> Iterator[Finding]:
    """Look at every resource of the stack that takes part."""
    there = Resources.read(aws)
    yield from resources.check_status(there, aws)
    configs: functions.Configs = {}
    yield from guarded("functions", partial(_functions, aws, there, configs))
    yield from guarded("versions", partial(_versions, aws, configs))
    arns: Arns = {}
    yield from guarded("dead letters", partial(_letters, aws, there, arns))
    arns |= _table_arns(tables) | _kinesis_arns(there, aws)
    yield from guarded("mappings", partial(_mappings, aws, there, arns))
    yield from functions.check_roles(configs, arns, aws)
    yield from guarded("schedules", partial(_schedules, aws, there, configs))
    yield from guarded("alarms", partial(_alarms, aws, there))


def _functions(aws: Aws, there: Resources, configs: functions.Configs) -> Iterator[Finding]:
    configs |= functions.read_configs(aws, there.ids, resources.STEPS)
    for step, config in configs.items():
        yield from functions.check_function(step, config, aws)
    yield from functions.check_agreement(configs, aws)


def _versions(aws: Aws, configs: functions.Configs) -> Iterator[Finding]:
    if not configs:
        yield not_checked("versions", "which layers the functions have is not known, see above")
    layers = functions.layers_of(configs)
    yield from functions.check_layers(layers, aws)
    first = next((arns[0] for arns in layers.values() if arns), None)
    if first is not None:
        name, _, number = first.rpartition(":")
        layer = aws.ask("lambda", "get_layer_version", LayerName=name, VersionNumber=int(number)) or {}
        yield from functions.check_version(layer.get("Description", ""), __version__, aws)


def _letters(aws: Aws, there: Resources, arns: Arns) -> Iterator[Finding]:
    """Look at every queue, and note its ARN, and at the bucket; those that may not be read come to one line."""
    unread = []
    for name, url in there.of_kind("AWS::SQS::Queue").items():
        asked = ["QueueArn", "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        try:
            answer = aws.ask("sqs", "get_queue_attributes", QueueUrl=url, AttributeNames=asked)
        except Unanswered as problem:
            unread.append(str(problem))
            continue
        attributes = None if answer is None else answer.get("Attributes", {})
        arns[name] = None if attributes is None else attributes.get("QueueArn")
        if name in resources.QUEUES:
            yield from resources.check_letters(name, url, attributes, aws)
    bucket = there.of_kind("AWS::S3::Bucket").get(resources.BUCKET)
    if bucket is not None:
        try:
            yield from resources.check_bucket(resources.BUCKET, bucket, aws)
        except Unanswered as problem:
            unread.append(str(problem))
    for why in dict.fromkeys(unread):
        yield not_checked("dead letters", why)


def _table_arns(tables: Mapping[str, Table]) -> Arns:
    """Return tables, their streams and indexes, as roles name them."""
    arns: Arns = {}
    for kind, table in tables.items():
        name, arn = f"{kind.title()}Table", None if table.found is None else table.found["TableArn"]
        arns |= {name: arn, f"{name}/stream": table.stream_arn}
        if arn is not None:
            indexes = [index["IndexName"] for index in table.wanted.get("GlobalSecondaryIndexes", ())]
            arns |= {f"{name}/index/{index}": f"{arn}/index/{index}" for index in indexes}
    return arns


def _kinesis_arns(there: Resources, aws: Aws) -> Arns:
    """Return the stream of Kinesis that the stack reads, if it does, and the bucket of what Lambda gives up of it.

    Buckets are named by their names alone; the partition is that of the stream's ARN.
    """
    kinesis = aws.parameter(triggers.KINESIS.source, "")
    if not kinesis:
        return {}
    arns: Arns = {f"{triggers.KINESIS.source}/stream": kinesis}
    bucket = there.of_kind("AWS::S3::Bucket").get(resources.BUCKET)
    if bucket is not None:
        arn = f"arn:{kinesis.split(':')[1]}:s3:::{bucket}"
        arns |= {resources.BUCKET: arn, f"{resources.BUCKET}/*": f"{arn}/*"}
    return arns


def _mappings(aws: Aws, there: Resources, arns: Arns) -> Iterator[Finding]:
    wanted = list(triggers.MAPPINGS)
    if aws.parameter(triggers.KINESIS.source, ""):
        wanted.append(triggers.KINESIS)
    listed: dict[str, list[dict[str, Any]]] = {}
    for one in wanted:
        function = there.ids.get(resources.function_of(one.step))
        if function is not None and one.step not in listed:
            listed[one.step] = aws.pages(
                "lambda", "list_event_source_mappings", "EventSourceMappings", FunctionName=function
            )
        source = one.source + "/stream" * one.is_stream
        if source in arns:
            request = one.request(function, arns[source], arns.get(one.failures), aws)
            yield from triggers.check_mapping(one, request, listed.get(one.step, []), aws)
        else:
            yield not_checked("mappings", f"{one.label}: where that is, is not known, see above")


def _schedules(aws: Aws, there: Resources, configs: functions.Configs) -> Iterator[Finding]:
    function = (configs.get("sweep") or {}).get("FunctionArn")
    for name in triggers.RULES:
        called = there.ids.get(name)
        rule = None if called is None else aws.ask("events", "describe_rule", Name=called)
        listed = {} if rule is None else aws.ask("events", "list_targets_by_rule", Rule=called) or {}
        targets = [target["Arn"] for target in listed.get("Targets", ())]
        yield from triggers.check_rule(triggers.Rule(name, rule, targets), function, aws)


def _alarms(aws: Aws, there: Resources) -> Iterator[Finding]:
    names = there.of_kind("AWS::CloudWatch::Alarm")
    # A hundred names is what one request takes; the template has a few dozen.
    answer = aws.ask("cloudwatch", "describe_alarms", AlarmNames=sorted(names.values())[:100]) or {}
    yield from resources.check_alarms(answer.get("MetricAlarms", []), names, aws)
