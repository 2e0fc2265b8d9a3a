"""What `stream-sort doctor` expects of a stack is what the template makes."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import pytest

from stream_sort import __version__
from stream_sort.aws.accounts import AwsPlace
from stream_sort.cli.connection import Connection
from stream_sort.cli.doctor import aws_of
from stream_sort.insight.checkup.functions import CONTROL, NAMED, NEEDS, READERS, SHARED, TABLES
from stream_sort.insight.checkup.resources import QUEUES, STEPS, function_of
from stream_sort.insight.checkup.triggers import KINESIS, MAPPINGS, PARALLEL, PARTIAL, RULES
from stream_sort.settings import Settings
from stream_sort.stores.dynamodb.tables import ACTIVE_INDEX, LISTING_INDEX, WAITING_INDEX

# Logs and traces are no business of queues.
OTHERS = ("logs:", "xray:")


def granted(step: str, resources: dict[str, Any]) -> dict[str, set[str]]:
    """What a role allows in every stack, or in one that reads Kinesis, by resource as the checkup names it."""
    found: dict[str, set[str]] = defaultdict(set)
    for one in resources[f"{step.title()}Role"]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"]:
        condition, statement, _ = one.get("Fn::If", ("", one, None))
        if condition not in {"", "FromKinesis"}:
            continue
        actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
        found[resource_of(statement["Resource"])] |= {one for one in actions if not one.startswith(OTHERS)}
    return {name: actions for name, actions in found.items() if actions}


def resource_of(value: dict[str, Any]) -> str:
    if "Fn::GetAtt" in value:
        name, attribute = value["Fn::GetAtt"]
        return f"{name}/stream" if attribute == "StreamArn" else str(name)
    if "Ref" in value:
        return f"{value['Ref']}/stream"
    name, _, rest = value["Fn::Sub"].removeprefix("${").partition(".Arn}")
    return str(name + rest)


@pytest.mark.parametrize("step", STEPS)
def test_a_role_is_asked_for_all_that_the_template_grants(step: str, resources: dict[str, Any]) -> None:
    asked = {name: set(actions) for name, actions in NEEDS[step].items() if name != "SinkQueue"}
    wanted = granted(step, resources)
    # ListStreams is of no stream in particular.
    assert asked == {name: actions - {"dynamodb:ListStreams"} for name, actions in wanted.items()}


def test_every_mapping_of_the_template_is_looked_at(resources: dict[str, Any]) -> None:
    made = {}
    for one in resources.values():
        if one["Type"] == "AWS::Lambda::EventSourceMapping":
            told = one["Properties"]
            source = json.dumps(told["EventSourceArn"])
            made[told["FunctionName"]["Ref"], source] = told
    wanted = {(function_of(one.step), source_of(one)) for one in (*MAPPINGS, KINESIS)}
    assert set(made) == wanted
    assert all(told["FunctionResponseTypes"] == [PARTIAL] for told in made.values())


def test_a_mapping_that_is_made_by_hand_is_what_the_template_makes(
    resources: dict[str, Any], defaults: dict[str, str]
) -> None:
    listed = [one["Properties"] for one in resources.values() if one["Type"] == "AWS::Lambda::EventSourceMapping"]
    made = {(told["FunctionName"]["Ref"], json.dumps(told["EventSourceArn"])): told for told in listed}
    assert defaults["Parallelization"] == PARALLEL
    aws = aws_of(Connection(Settings(), AwsPlace()))
    for one in (*MAPPINGS, KINESIS):
        request = one.request("function", "source", "failures", aws)
        template = made[function_of(one.step), source_of(one)]
        assert set(request) - {"Enabled"} == set(template) - {"Enabled"}
        for name in set(request) - {"EventSourceArn", "FunctionName", "DestinationConfig", "Enabled"}:
            wanted = template[name]
            assert request[name] == (int(PARALLEL) if wanted == {"Ref": "Parallelization"} else wanted)
        assert request.get("Enabled", True) is not bool(one.switch)


def source_of(wanted: Any) -> str:
    if wanted is KINESIS:
        return json.dumps({"Ref": wanted.source})
    return json.dumps({"Fn::GetAtt": [wanted.source, "StreamArn" if wanted.is_stream else "Arn"]})


def test_the_rules_and_queues_that_are_looked_at_are_there(resources: dict[str, Any], template: dict[str, Any]) -> None:
    every = {name: one for name, one in resources.items() if one["Type"] == "AWS::Events::Rule"}
    # One that waits for events of S3 has no schedule.
    rules = {name for name, one in every.items() if "ScheduleExpression" in one["Properties"]}
    assert rules == set(RULES)
    kept = {name for name, one in template["Resources"].items() if one["Type"] == "AWS::SQS::Queue"}
    assert set(QUEUES) == {name for name in kept if name.endswith(("DeadLetters", "Failures"))}


@pytest.mark.parametrize("step", STEPS)
def test_functions_are_told_what_is_compared(step: str, resources: dict[str, Any]) -> None:
    told = resources[function_of(step)]["Properties"]["Environment"]["Variables"]
    for variable, output in (TABLES | (CONTROL if step in READERS else {})).items():
        assert told[variable] == {"Ref": output}
    assert set(SHARED) - {"STREAM_SORT_CONSUMER"} <= set(told)


def test_the_layer_says_which_version_it_holds(template: dict[str, Any]) -> None:
    match = NAMED.search(template["Resources"]["StreamSortLayer"]["Properties"]["Description"])
    assert match is not None
    assert match[1] == __version__


def test_indexes_are_called_as_in_the_template(template: dict[str, Any]) -> None:
    named = {
        table: [index["IndexName"] for index in template["Resources"][table]["Properties"]["GlobalSecondaryIndexes"]]
        for table in ("CursorTable", "ControlTable")
    }
    assert named == {"CursorTable": [WAITING_INDEX, ACTIVE_INDEX], "ControlTable": [LISTING_INDEX]}
