"""A stack as it stands in AWS, of moto's tables, functions, queues and rules; what moto lacks answers here."""

from __future__ import annotations

import io
import json
import threading
import zipfile
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import boto3

from stream_sort import OrderedConsumer, StreamSorter, __version__
from tests.functional.command_line import Line

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

WHERE = {"region_name": "eu-west-1", "aws_access_key_id": "x", "aws_secret_access_key": "y"}
STEPS = ("enqueue", "advance", "process", "sweep")
QUEUES = ("EnqueueQueue", "RetryQueue", "EnqueueDeadLetters", "RetryDeadLetters", "StreamFailures")
SOURCES = (("enqueue", "EnqueueQueue"), ("advance", "Items"), ("process", "Cursor"), ("process", "RetryQueue"))
TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}


class DeployedStack:
    """The stack `orders`. `denied` are pairs of action and part of an ARN that the simulator of IAM denies.

    One that is not `mapped` can be written to: otherwise moto would start the functions, in containers.
    """

    def __init__(self, *, mapped: bool = True) -> None:
        self._mapped = mapped
        self.resources: dict[str, tuple[str, str]] = {}
        self.parameters = {"QueueKey": "queue", "SeqKey": "seq", "FirstSeq": "0", "GapPolicy": "wait"}
        self.status = "CREATE_COMPLETE"
        self.denied: set[tuple[str, str]] = set()
        self.may_simulate = True
        self.mappings: dict[tuple[str, str], str] = {}
        self.arns: dict[str, str] = {}
        self.sorter = StreamSorter(client=self.client("dynamodb"), in_flight=1)
        self._tables()
        self._queues()
        self._functions()
        self._rules_and_alarms()

    def client(self, service: str) -> Any:
        return boto3.client(service, **WHERE)

    def doctor(self, *words: str, code: int = 0) -> list[dict[str, str]]:
        """What it finds, but for what is well."""
        found: list[dict[str, str]] = Line().json("doctor", "--stack", "orders", *words, code=code)["findings"]
        return [one for one in found if one["level"] != "OK"]

    def set_variable(self, step: str, name: str, value: str) -> None:
        functions = self.client("lambda")
        told = functions.get_function_configuration(FunctionName=step)["Environment"]["Variables"] | {name: value}
        functions.update_function_configuration(FunctionName=step, Environment={"Variables": told})

    def _tables(self) -> None:
        self.sorter.create_tables()
        # Before anybody reads the streams: moto would start the functions, in containers.
        self.sorter.put({"queue": "ada", "seq": 0})
        OrderedConsumer("process", sorter=self.sorter).create_tables()
        dynamodb = self.client("dynamodb")
        stream = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
        dynamodb.update_table(TableName="Items", StreamSpecification=stream)
        for table in ("Items", "Cursor", "Control"):
            self._add(f"{table}Table", table, "AWS::DynamoDB::Table")
            arn = dynamodb.describe_table(TableName=table)["Table"].get("LatestStreamArn")
            self.arns |= {table: arn} if arn else {}
            self.keep_backups(table, on=True)

    def _queues(self) -> None:
        sqs = self.client("sqs")
        for name in QUEUES:
            url = sqs.create_queue(QueueName=name)["QueueUrl"]
            told = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
            self.arns[name] = told["QueueArn"]
            self._add(name, url, "AWS::SQS::Queue")

    def _functions(self) -> None:
        functions, iam = self.client("lambda"), self.client("iam")
        code = {"ZipFile": _zip()}
        layer = functions.publish_layer_version(
            LayerName="StreamSortLayer", Description=f"stream_sort {__version__}, boto3", Content=code
        )["LayerVersionArn"]
        for step in STEPS:
            role = iam.create_role(RoleName=step, AssumeRolePolicyDocument=json.dumps(TRUST))["Role"]["Arn"]
            variables = {"STREAM_SORT_ITEMS_TABLE": "Items", "STREAM_SORT_CURSOR_TABLE": "Cursor"}
            variables |= {"STREAM_SORT_CONTROL_TABLE": "Control"} if step in {"process", "sweep"} else {}
            functions.create_function(
                FunctionName=step,
                Runtime="python3.11",
                Role=role,
                Handler="app.handler",
                Code=code,
                Layers=[layer],
                Environment={"Variables": variables | {"STREAM_SORT_SEQ_KEY": "seq"}},
            )
            self._add(f"{step.title()}Function", step, "AWS::Lambda::Function")
        for step, source in SOURCES if self._mapped else ():
            self.map(step, source, Enabled=step != "advance")

    def keep_backups(self, table: str, *, on: bool) -> None:
        """Switch point-in-time recovery on or off."""
        wanted = {"PointInTimeRecoveryEnabled": on}
        self.client("dynamodb").update_continuous_backups(TableName=table, PointInTimeRecoverySpecification=wanted)

    def map(self, step: str, source: str, **options: Any) -> None:
        """Let a function read a stream or a queue."""
        start = {"StartingPosition": "TRIM_HORIZON"} if "stream" in self.arns[source] else {}
        told = {"FunctionResponseTypes": ["ReportBatchItemFailures"], **start, **options}
        made = self.client("lambda").create_event_source_mapping(
            EventSourceArn=self.arns[source], FunctionName=step, **told
        )
        self.mappings[step, source] = made["UUID"]

    def _rules_and_alarms(self) -> None:
        events, watch = self.client("events"), self.client("cloudwatch")
        sweep = self.client("lambda").get_function_configuration(FunctionName="sweep")["FunctionArn"]
        for name in ("SweepFunctionOften", "SweepFunctionSeldom"):
            events.put_rule(Name=name, ScheduleExpression="rate(1 minute)")
            events.put_targets(Rule=name, Targets=[{"Id": "sweep", "Arn": sweep}])
            self._add(name, name, "AWS::Events::Rule")
        watch.put_metric_alarm(
            AlarmName="orders-ParkedAlarm",
            AlarmDescription="A queue is parked. stream-sort parked list",
            MetricName="QueuesParked",
            Namespace="StreamSort/orders",
            Statistic="Maximum",
            Period=60,
            EvaluationPeriods=1,
            Threshold=0,
            ComparisonOperator="GreaterThanThreshold",
        )
        self._add("ParkedAlarm", "orders-ParkedAlarm", "AWS::CloudWatch::Alarm")

    def read_kinesis(self) -> str:
        """Give the stack a Kinesis stream, with the bucket and the queue of its failures; the stream's ARN."""
        kinesis = self.client("kinesis")
        kinesis.create_stream(StreamName="source", ShardCount=1)
        arn: str = kinesis.describe_stream_summary(StreamName="source")["StreamDescriptionSummary"]["StreamARN"]
        self.arns["Source"] = self.parameters["KinesisSource"] = arn
        self.client("s3").create_bucket(
            Bucket="kept", CreateBucketConfiguration={"LocationConstraint": WHERE["region_name"]}
        )
        self._add("KinesisFailuresBucket", "kept", "AWS::S3::Bucket")
        url = self.client("sqs").create_queue(QueueName="KinesisFailures")["QueueUrl"]
        self._add("KinesisFailures", url, "AWS::SQS::Queue")
        return arn

    def _add(self, name: str, called: str, kind: str) -> None:
        self.resources[name] = (called, kind)

    @contextmanager
    def endpoint(self) -> Iterator[str]:
        """CloudFormation and the simulator of IAM: moto's needs more than the rest of the suite, or is not there."""
        stack = self

        class Endpoint(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                code, answer = stack.answer(asked)
                body = answer.encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        with ThreadingHTTPServer(("127.0.0.1", 0), Endpoint) as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.05,))
            thread.start()
            yield f"http://127.0.0.1:{server.server_port}"
            server.shutdown()
            thread.join()

    def answer(self, asked: dict[str, list[str]]) -> tuple[int, str]:
        (action,) = asked["Action"]
        result = {
            "DescribeStacks": self._described,
            "ListStackResources": self._listed,
            "SimulatePrincipalPolicy": lambda: self._simulated(asked),
        }[action]()
        if action == "SimulatePrincipalPolicy" and not self.may_simulate:
            return 403, "<ErrorResponse><Error><Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>"
        return 200, f"<{action}Response><{action}Result>{result}</{action}Result></{action}Response>"

    def _described(self) -> str:
        outputs = {f"{name}Url" if "Queue" in kind else name: called for name, (called, kind) in self.resources.items()}
        told = _pairs("Output", outputs), _pairs("Parameter", self.parameters)
        inner = f"<Outputs>{told[0]}</Outputs><Parameters>{told[1]}</Parameters>"
        named = f"<StackName>orders</StackName><StackStatus>{self.status}</StackStatus>"
        return f"<Stacks><member>{named}{inner}</member></Stacks>"

    def _listed(self) -> str:
        members = "".join(
            f"<member><LogicalResourceId>{name}</LogicalResourceId><PhysicalResourceId>{called}</PhysicalResourceId>"
            f"<ResourceType>{kind}</ResourceType></member>"
            for name, (called, kind) in self.resources.items()
        )
        return f"<StackResourceSummaries>{members}</StackResourceSummaries>"

    def _simulated(self, asked: dict[str, list[str]]) -> str:
        (arn,) = asked["ResourceArns.member.1"]
        actions = [values[0] for name, values in asked.items() if name.startswith("ActionNames")]
        denied = {action for action, part in self.denied if part in arn}
        members = "".join(
            f"<member><EvalActionName>{action}</EvalActionName><EvalResourceName>{arn}</EvalResourceName>"
            f"<EvalDecision>{'implicitDeny' if action in denied else 'allowed'}</EvalDecision></member>"
            for action in actions
        )
        return f"<EvaluationResults>{members}</EvaluationResults><IsTruncated>false</IsTruncated>"


def stand_in_for_aws(stack: DeployedStack, endpoint: str, patch: pytest.MonkeyPatch) -> DeployedStack:
    """Let commands find the stack."""
    for service in ("CLOUDFORMATION", "IAM"):
        patch.setenv(f"AWS_ENDPOINT_URL_{service}", endpoint)
    return stack


def _pairs(kind: str, values: dict[str, str]) -> str:
    pairs = (f"<{kind}Key>{name}</{kind}Key><{kind}Value>{value}</{kind}Value>" for name, value in values.items())
    return "".join(f"<member>{pair}</member>" for pair in pairs)


def _zip() -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as file:
        file.writestr("app.py", "")
    return held.getvalue()
