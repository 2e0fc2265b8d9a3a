"""The template with everything switched on: other key names, sources, sink and capacity, roles enforced."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from stream_sort.local.detached import DetachedMiniStack
from stream_sort.local.record import StackRecord
from stream_sort.local.report import summary
from stream_sort.local.stack import LocalStack
from stream_sort.local.tools import ACCESS_KEY, REGION, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.ministack

ARN = f"arn:aws:{{}}:{REGION}:000000000000:{{}}"
OPTIONS = {
    "QueueKey": "lane",
    "SeqKey": "no",
    "FirstSeq": "1",
    "GapPolicy": "skip after 1 seconds",
    "HttpApi": "Enabled",
    "KinesisSource": ARN.format("kinesis", "stream/source"),
    "AdvanceTrigger": "Enabled",
    "SinkTarget": ARN.format("sqs", "mine.fifo"),
    "Start": "latest",
    "CapacityMode": "provisioned",
    "ArchiveBucket": "Enabled",
    "Tracing": "Active",
    "AlarmTopic": ARN.format("sns", "alarms"),
}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """A local AWS in which everything is there that the options name, then the template."""
    aws = DetachedMiniStack(tmp_path_factory.mktemp("options"), free_port())
    aws.start()
    try:
        StackRecord(aws.port).save(aws.home)
        with closing(aws.client("sqs")) as sqs, closing(aws.client("kinesis")) as kinesis:
            sqs.create_queue(QueueName="mine.fifo", Attributes={"FifoQueue": "true"})
            kinesis.create_stream(StreamName="source", ShardCount=1)
        up = LocalStack.up(home=aws.home, parameters=OPTIONS)
        # "latest" is where queues stand when the consumer first runs, as the sweep makes it do within a minute.
        up.invoke("sweep", {})
        yield up
    finally:
        aws.stop()


def sunk(stack: LocalStack, lane: str, count: int) -> list[int]:
    """What arrived for a lane in the queue that was there before the stack, in order."""
    got: list[dict[str, Any]] = []
    deadline = time.monotonic() + 60
    with closing(stack.client("sqs")) as sqs:
        url = sqs.get_queue_url(QueueName="mine.fifo")["QueueUrl"]
        while len(got) < count and time.monotonic() < deadline:
            for message in sqs.receive_message(QueueUrl=url, WaitTimeSeconds=1).get("Messages", ()):
                sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
                got.append(json.loads(message["Body"]))
    assert {message["lane"] for message in got} <= {lane}
    return [message["no"] for message in got]


def test_records_of_a_kinesis_stream_come_out_in_order(stack: LocalStack) -> None:
    with closing(stack.client("kinesis")) as kinesis:
        for number in (2, 1):
            data = json.dumps({"lane": "kinesis", "no": number}).encode()
            kinesis.put_record(StreamName="source", PartitionKey="any", Data=data)
    assert sunk(stack, "kinesis", 2) == [1, 2]


def test_a_poison_record_of_kinesis_is_kept_in_the_dead_letters(stack: LocalStack) -> None:
    with closing(stack.client("kinesis")) as kinesis, closing(stack.client("sqs")) as sqs:
        kinesis.put_record(StreamName="source", PartitionKey="any", Data=b"poison")
        url, deadline = stack.outputs["EnqueueDeadLettersUrl"], time.monotonic() + 60
        while not (got := sqs.receive_message(QueueUrl=url, WaitTimeSeconds=1, MessageAttributeNames=["All"])).get(
            "Messages"
        ):
            assert time.monotonic() < deadline
    (one,) = got["Messages"]
    assert one["Body"] == "poison"
    assert one["MessageAttributes"]["stream"]["StringValue"] == OPTIONS["KinesisSource"]
    assert one["MessageAttributes"]["error"]["StringValue"] == "InvalidInput"


def test_what_others_write_to_the_items_table_is_released_by_its_stream(stack: LocalStack) -> None:
    with closing(stack.client("dynamodb")) as dynamodb:
        for number in ("2", "1"):
            item = {"lane": {"S": "direct"}, "no": {"N": number}}
            dynamodb.put_item(TableName=stack.outputs["ItemsTable"], Item=item)
    assert sunk(stack, "direct", 2) == [1, 2]


def test_a_gap_is_skipped_by_the_sweep_as_the_policy_says(stack: LocalStack) -> None:
    stack.invoke("enqueue", {"lane": "gap", "no": 2})
    time.sleep(1.1)
    stack.invoke("sweep", {})
    assert sunk(stack, "gap", 1) == [2]


def test_the_http_api_takes_signed_requests_only(stack: LocalStack) -> None:
    api = stack.outputs["ApiUrl"].split("//")[1].split(".")[0]
    body = json.dumps({"lane": "http", "no": 1}).encode()
    request = AWSRequest(
        "POST",
        f"{stack.endpoint}/messages",
        data=body,
        headers={"Host": f"{api}.execute-api.localhost", "Content-Type": "application/json"},
    )
    SigV4Auth(Credentials(ACCESS_KEY, ACCESS_KEY), "execute-api", REGION).add_auth(request)
    assert post(request.url, dict(request.headers), body) == 200
    unsigned = {name: value for name, value in request.headers.items() if name in {"Host", "Content-Type"}}
    assert post(request.url, unsigned, body) == 403
    assert sunk(stack, "http", 1) == [1]


def test_the_summary_shows_the_http_api_and_how_to_call_it_here(stack: LocalStack) -> None:
    said = summary(stack, "stream-sort local {}".format)
    assert stack.outputs["ApiUrl"] in said
    (command,) = [line for line in said.splitlines() if "curl" in line]
    if shutil.which("curl") is None:
        pytest.skip("there is no curl to try it with")
    words = [*shlex.split(command), "--silent", "--noproxy", "*"]
    answer = json.loads(subprocess.run(words, check=True, capture_output=True, timeout=60).stdout)
    assert answer["accepted"] == 2
    assert sunk(stack, "ada", 2) == [1, 2]


def post(url: str, headers: dict[str, str], body: bytes) -> int:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(urllib.request.Request(url, body, headers), timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_alarms_and_tables_are_as_the_options_say(stack: LocalStack) -> None:
    with closing(stack.client("cloudwatch")) as cloudwatch:
        alarms = cloudwatch.describe_alarms()["MetricAlarms"]
    assert alarms
    assert all(alarm["AlarmActions"] == [OPTIONS["AlarmTopic"]] for alarm in alarms)
    with closing(stack.client("dynamodb")) as dynamodb:
        table = dynamodb.describe_table(TableName=stack.outputs["CursorTable"])["Table"]
    assert int(table["ProvisionedThroughput"]["WriteCapacityUnits"]) == 25
    assert "SinkQueueUrl" not in stack.outputs


def test_the_archive_is_a_private_bucket_that_keeps_older_versions(stack: LocalStack) -> None:
    bucket = stack.outputs["ArchiveBucket"]
    with closing(stack.client("s3")) as s3:
        s3.put_object(Bucket=bucket, Key="archive/some", Body=b"any")
        assert s3.get_bucket_versioning(Bucket=bucket)["Status"] == "Enabled"
        closed = s3.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"]
    assert set(closed.values()) == {True}
    assert "SparkApplication" not in stack.outputs
