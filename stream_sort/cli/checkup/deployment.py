"""Everything of a deployed stack but its tables: functions, layers, queues, mappings, roles, schedules, alarms."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from stream_sort import __version__
from stream_sort.cli.checkup import functions, mappings, roles, schedules, versions, watch
from stream_sort.cli.checkup.asking import Unanswered
from stream_sort.cli.checkup.finding import Finding, not_checked
from stream_sort.cli.checkup.guard import guarded
from stream_sort.cli.checkup.resources import STEPS, Resources, check_status, function_of
from stream_sort.stores.dynamodb.tables import ACTIVE_INDEX, LISTING_INDEX, WAITING_INDEX

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stream_sort.cli.checkup.asking import Aws
    from stream_sort.cli.checkup.tables import Table

# By name in the template; None: there is no such thing, missing: nobody could see.
Arns = dict[str, str | None]


def check_stack(aws: Aws, tables: Mapping[str, Table]) -> Iterator[Finding]:
    """Look at every resource of the stack that takes part."""
    resources = Resources.read(aws)
    yield from check_status(resources, aws)
    configs: functions.Configs = {}
    yield from guarded("functions", partial(_functions, aws, resources, configs))
    yield from guarded("versions", partial(_versions, aws, configs))
    arns: Arns = {}
    yield from guarded("dead letters", partial(_letters, aws, resources, arns))
    arns |= _table_arns(tables) | _kinesis_arns(resources, aws)
    yield from guarded("mappings", partial(_mappings, aws, resources, arns))
    yield from roles.check_roles(configs, arns, aws)
    yield from guarded("schedules", partial(_schedules, aws, resources, configs))
    yield from guarded("alarms", partial(_alarms, aws, resources))


def _functions(aws: Aws, resources: Resources, configs: functions.Configs) -> Iterator[Finding]:
    configs |= functions.read_configs(aws, resources.ids, STEPS)
    for step, config in configs.items():
        yield from functions.check_function(step, config, aws)
    yield from functions.check_agreement(configs, aws)


def _versions(aws: Aws, configs: functions.Configs) -> Iterator[Finding]:
    if not configs:
        yield not_checked("versions", "which layers the functions have is not known, see above")
    layers = versions.layers_of(configs)
    yield from versions.check_layers(layers, aws)
    first = next((arns[0] for arns in layers.values() if arns), None)
    if first is not None:
        name, _, number = first.rpartition(":")
        layer = aws.ask("lambda", "get_layer_version", LayerName=name, VersionNumber=int(number)) or {}
        yield from versions.check_version(layer.get("Description", ""), __version__, aws)


def _letters(aws: Aws, resources: Resources, arns: Arns) -> Iterator[Finding]:
    """Look at every queue, and note its ARN, and at the bucket; those that may not be read come to one line."""
    unread = []
    for name, url in resources.of_kind("AWS::SQS::Queue").items():
        asked = ["QueueArn", "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        try:
            answer = aws.ask("sqs", "get_queue_attributes", QueueUrl=url, AttributeNames=asked)
        except Unanswered as problem:
            unread.append(str(problem))
            continue
        attributes = None if answer is None else answer.get("Attributes", {})
        arns[name] = None if attributes is None else attributes.get("QueueArn")
        if name in watch.QUEUES:
            yield from watch.check_letters(name, url, attributes, aws)
    bucket = resources.of_kind("AWS::S3::Bucket").get(watch.BUCKET)
    if bucket is not None:
        try:
            yield from watch.check_bucket(watch.BUCKET, bucket, aws)
        except Unanswered as problem:
            unread.append(str(problem))
    for why in dict.fromkeys(unread):
        yield not_checked("dead letters", why)


def _table_arns(tables: Mapping[str, Table]) -> Arns:
    """Tables, their streams and indexes, as roles name them."""
    arns: Arns = {}
    for kind, table in tables.items():
        name, arn = f"{kind.title()}Table", None if table.found is None else table.found["TableArn"]
        arns |= {name: arn, f"{name}/stream": table.stream_arn}
        if arn is not None:
            indexes = (WAITING_INDEX, ACTIVE_INDEX, LISTING_INDEX)
            arns |= {f"{name}/index/{index}": f"{arn}/index/{index}" for index in indexes}
    return arns


def _kinesis_arns(resources: Resources, aws: Aws) -> Arns:
    """The stream of Kinesis that the stack reads, if it does, and the bucket of what Lambda gives up of it.

    Buckets are named by their names alone; the partition is that of the stream's ARN.
    """
    kinesis = aws.parameter(mappings.KINESIS.source, "")
    if not kinesis:
        return {}
    arns: Arns = {f"{mappings.KINESIS.source}/stream": kinesis}
    bucket = resources.of_kind("AWS::S3::Bucket").get(watch.BUCKET)
    if bucket is not None:
        arn = f"arn:{kinesis.split(':')[1]}:s3:::{bucket}"
        arns |= {watch.BUCKET: arn, f"{watch.BUCKET}/*": f"{arn}/*"}
    return arns


def _mappings(aws: Aws, resources: Resources, arns: Arns) -> Iterator[Finding]:
    wanted = list(mappings.MAPPINGS)
    if aws.parameter(mappings.KINESIS.source, ""):
        wanted.append(mappings.KINESIS)
    listed: dict[str, list[dict[str, Any]]] = {}
    for one in wanted:
        function = resources.ids.get(function_of(one.step))
        if function is not None and one.step not in listed:
            listed[one.step] = aws.pages(
                "lambda", "list_event_source_mappings", "EventSourceMappings", FunctionName=function
            )
        source = one.source + "/stream" * one.is_stream
        if source in arns:
            request = one.request(function, arns[source], arns.get(one.failures), aws)
            yield from mappings.check_mapping(one, request, listed.get(one.step, []), aws)
        else:
            yield not_checked("mappings", f"{one.told}: where that is, is not known, see above")


def _schedules(aws: Aws, resources: Resources, configs: functions.Configs) -> Iterator[Finding]:
    function = (configs.get("sweep") or {}).get("FunctionArn")
    for name in schedules.RULES:
        called = resources.ids.get(name)
        rule = None if called is None else aws.ask("events", "describe_rule", Name=called)
        listed = {} if rule is None else aws.ask("events", "list_targets_by_rule", Rule=called) or {}
        targets = [target["Arn"] for target in listed.get("Targets", ())]
        yield from schedules.check_rule(schedules.Rule(name, rule, targets), function, aws)


def _alarms(aws: Aws, resources: Resources) -> Iterator[Finding]:
    names = resources.of_kind("AWS::CloudWatch::Alarm")
    # A hundred names is what one request takes; the template has a few dozen.
    answer = aws.ask("cloudwatch", "describe_alarms", AlarmNames=sorted(names.values())[:100]) or {}
    yield from watch.check_alarms(answer.get("MetricAlarms", []), names, aws)
