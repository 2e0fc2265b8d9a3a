"""Every symptom of docs/operate.md, reproduced on the deployed app, seen and cured by the page's own commands.

Commands under Look may fail: they show the trouble. Those under Free it and Prove it must succeed. What the page shows
of their output must be in it.
"""

from __future__ import annotations

import json
import time
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort.local.stack import LocalStack
from tests.local_stack.app import App, eventually
from tests.local_stack.runbook import Command, Done, Shell, sections
from tests.local_stack.throttle import Throttle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.ministack, pytest.mark.timeout(900)]

# What it does is committed with the checkpoint, so that it happens once, however often a batch comes.
HANDLER = """
from pathlib import Path

def handle(batch):
    for message in batch:
        if message.get("needs") and not Path(message["needs"]).exists():
            raise ValueError("no such account")
    seqs = [message["seq"] for message in batch]
    batch.transaction.update(
        "Delivered",
        {"queue": batch.queue},
        "SET seqs = list_append(if_not_exists(seqs, :none), :seqs)",
        ExpressionAttributeValues={":none": [], ":seqs": seqs},
    )
"""
EVENTS = Path(__file__).parents[2] / "events"
# The consumer works by itself; how often to look whether it is done.
TRIES = 60
STREAM = "arn:aws:kinesis:us-east-1:000000000000:stream/source"
PARAMETERS = {"MaxAttempts": "2", "OnPoison": "park", "KinesisSource": STREAM}
SYMPTOMS = {one.title: one for one in sections()}


class Bench:
    """The deployed app, the operator's shell, and the way between them."""

    def __init__(self, app: App, shell: Shell, throttle: Throttle) -> None:
        self.app = app
        self.shell = shell
        self.throttle = throttle

    def put(self, queue: str, *seqs: int, **fields: Any) -> None:
        answer = self.app.put(*({"queue": queue, "seq": seq} | fields for seq in seqs))
        assert answer["accepted"] == len(seqs)

    def file(self, name: str, *messages: dict[str, Any]) -> None:
        """What a producer has to send, in the operator's folder."""
        self.shell.folder.joinpath(name).write_text("".join(json.dumps(one) + "\n" for one in messages))

    def consumed(self, queue: str, seq: int) -> None:
        process = self.app.consumer("process")
        assert eventually(lambda: process.checkpoint(queue) == seq, seconds=60)

    def delivered(self, queue: str) -> list[int]:
        """What the handler did of a queue, in this order."""
        key = {"queue": {"S": queue}}
        row = self.app._dynamodb.get_item(TableName="Delivered", Key=key, ConsistentRead=True)["Item"]
        return [int(seq["N"]) for seq in row["seqs"]["L"]]

    def delete(self, output: str, **key: str | int) -> None:
        wire = {name: {"S" if isinstance(value, str) else "N": str(value)} for name, value in key.items()}
        self.app._dynamodb.delete_item(TableName=self.app.stack.outputs[output], Key=wire)

    def set_back(self, queue: str, position: int) -> None:
        """The cursor row as it was before."""
        self.app._dynamodb.update_item(
            TableName=self.app.stack.outputs["CursorTable"],
            Key={"queue": {"S": queue}},
            UpdateExpression="SET #position = :old",
            ExpressionAttributeNames={"#position": "seq"},
            ExpressionAttributeValues={":old": {"N": str(position)}},
        )

    @contextmanager
    def mapping_disabled(self, *, mend: bool) -> Iterator[None]:
        """Nobody reads the cursor table's stream meanwhile; without `mend` it stays so."""
        with closing(self.app.stack.client("lambda")) as client:
            found = client.list_event_source_mappings(FunctionName=self.app.stack.function("process"))
            (uuid,) = [one["UUID"] for one in found["EventSourceMappings"] if ":dynamodb:" in one["EventSourceArn"]]
            client.update_event_source_mapping(UUID=uuid, Enabled=False)
            yield
            if mend:
                client.update_event_source_mapping(UUID=uuid, Enabled=True)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("runbook")
    file = folder / "deliver.py"
    file.write_text(HANDLER)
    with (
        LocalStack.leashed(handler=f"{file}:handle", parameters=PARAMETERS) as stack,
        App(stack) as app,
        Throttle(stack.endpoint).open() as throttle,
    ):
        app._dynamodb.create_table(
            TableName="Delivered",
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "queue", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "queue", "AttributeType": "S"}],
        )
        stack.allow("process", "dynamodb:UpdateItem")
        yield Bench(app, Shell(folder, throttle.url), throttle)


def follow(bench: Bench, title: str, mend: Callable[[], None] = lambda: None) -> None:
    """Do what a section says; `mend` is what the operator does besides, before the queue can be freed."""
    section, run = SYMPTOMS[title], bench.shell.run
    for command in section.commands("Look"):
        done = run(command.text)
        assert command.missing_in(done.output) == [], told(command, done)
    # A proof that holds before the cure proves nothing.
    assert not all(is_proved(command, run(command.text)) for command in section.commands("Prove it"))
    mend()
    for command in section.commands("Free it"):
        done = run(command.text)
        assert is_proved(command, done), told(command, done)
    for command in section.commands("Prove it"):
        tries = [run(command.text)]
        while not is_proved(command, tries[-1]) and len(tries) < TRIES:
            time.sleep(1.0)
            tries.append(run(command.text))
        assert is_proved(command, tries[-1]), told(command, tries[-1])


def is_proved(command: Command, done: Done) -> bool:
    return done.code == 0 and command.missing_in(done.output) == []


def told(command: Command, done: Done) -> str:
    return f"$ {command.text}\n{done.output}[{done.code}]; missing: {command.missing_in(done.output)}"


def test_a_stuck_queue(bench: Bench) -> None:
    bench.put("ada", 0, 1, 4, 5)
    bench.consumed("ada", 1)
    bench.file("found.jsonl", {"queue": "ada", "seq": 2})
    follow(bench, "A queue is stuck")
    assert bench.delivered("ada") == [0, 1, 2, 4, 5]


def test_growing_lag(bench: Bench) -> None:
    bench.put("bob", 0)
    bench.consumed("bob", 0)
    with bench.mapping_disabled(mend=False):
        bench.put("bob", 1, 2, 3, 4, 5)
        follow(bench, "A consumer's lag grows")
    assert bench.delivered("bob") == [0, 1, 2, 3, 4, 5]


def test_a_poison_message(bench: Bench, tmp_path: Path) -> None:
    needed = tmp_path / "account"
    for queue, needs in (("cyd", needed), ("cal", tmp_path / "never")):
        bench.put(queue, 0)
        bench.consumed(queue, 0)
        bench.put(queue, 1, needs=str(needs))
        bench.put(queue, 2)
    process = bench.app.consumer("process")
    assert eventually(lambda: [one.next_try for one in process.parked()] == [None, None], seconds=60)
    follow(bench, "A message that cannot be handled", needed.touch)
    assert (bench.delivered("cyd"), bench.delivered("cal")) == ([0, 1, 2], [0, 2])


def test_a_conflict(bench: Bench) -> None:
    bench.put("dee", 0)
    bench.put("dee", 1, amount=5)
    other = {"queue": "dee", "amount": 7}
    bench.file("dee.jsonl", {"seq": 1} | other)
    bench.file("dee-again.jsonl", {"seq": 2} | other)
    follow(bench, "A conflict")
    assert bench.delivered("dee") == [0, 1, 2]


def test_restored_tables(bench: Bench) -> None:
    for queue in ("eve", "eli"):
        bench.put(queue, 0, 1, 2)
        bench.consumed(queue, 2)
    with bench.mapping_disabled(mend=True):
        for queue in ("eve", "eli"):
            bench.put(queue, 3, 4, 5, 6)
            for seq in (5, 6):
                bench.delete("ItemsTable", queue=queue, seq=seq)
    for queue in ("eve", "eli"):
        bench.consumed(queue, 4)
    process = bench.app.consumer("process")
    assert eventually(lambda: {one.queue for one in process.parked()} == {"eve", "eli"}, seconds=60)
    bench.put("eva", 0, 1, 2, 3)
    bench.consumed("eva", 3)
    bench.file("eve.jsonl", {"queue": "eve", "seq": 5}, {"queue": "eve", "seq": 6})
    # Without the stream: a restored table is a new one, and carries no record of its rows.
    with bench.mapping_disabled(mend=True):
        bench.set_back("eva", 1)
        follow(bench, "A table was restored to an earlier time")
    assert bench.delivered("eva") == [0, 1, 2, 3]
    bench.put("eli", 7)
    bench.consumed("eli", 7)
    assert (bench.delivered("eve"), bench.delivered("eli")) == ([0, 1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 7])


def test_a_lost_cursor(bench: Bench) -> None:
    bench.put("fay", 0, 1, 2)
    bench.consumed("fay", 2)
    bench.delete("CursorTable", queue="fay")
    bench.file("fay.jsonl", {"queue": "fay", "seq": 3}, {"queue": "fay", "seq": 4})
    follow(bench, "A cursor row is lost")
    assert bench.delivered("fay") == [0, 1, 2, 3, 4]


def test_throttling(bench: Bench) -> None:
    bench.file("gus.jsonl", *({"queue": "gus", "seq": seq} for seq in range(30)))
    bench.throttle.table = bench.app.stack.outputs["ItemsTable"]
    try:
        follow(bench, "A table throttles", lambda: setattr(bench.throttle, "table", None))
    finally:
        bench.throttle.table = None
    assert bench.throttle.refused
    assert bench.delivered("gus") == list(range(30))


def test_a_wrong_first_seq(bench: Bench) -> None:
    bench.put("hal", 1000, 1001)
    follow(bench, "A queue waits for a first seq that never was")
    assert bench.delivered("hal") == [1000, 1001]


def test_a_stream_outage_over_a_day(bench: Bench) -> None:
    bench.put("ida", 0)
    bench.consumed("ida", 0)
    with ExitStack() as outage:
        outage.enter_context(bench.app.stream_lost())
        bench.put("ida", 1, 2, 3, 4, 5)
        follow(bench, "The stream was out for more than a day", outage.close)
    assert bench.delivered("ida") == [0, 1, 2, 3, 4, 5]


def test_two_producers_on_one_queue(bench: Bench) -> None:
    bench.put("jon", 0, 1, 2, text="from a")
    bench.consumed("jon", 2)
    bench.file("from-b.jsonl", *({"queue": "jon", "seq": seq, "text": "from b"} for seq in range(3)))
    follow(bench, "Two producers on one queue")
    assert (bench.delivered("jon"), bench.delivered("jon-b")) == ([0, 1, 2], [0, 1, 2])


def sample(name: str) -> Any:
    return json.loads((EVENTS / f"{name}.json").read_text())


def test_dead_letters(bench: Bench) -> None:
    event = sample("enqueue_failed_event") | {"requestPayload": [{"queue": "kim", "seq": 0}]}
    with closing(bench.app.stack.client("sqs")) as sqs:
        for body in (event, {"queue": "kim", "seq": 1}):
            sqs.send_message(QueueUrl=bench.app.stack.outputs["EnqueueDeadLettersUrl"], MessageBody=json.dumps(body))
    follow(bench, "Messages are in the dead letters")
    assert bench.delivered("kim") == [0, 1]


def test_records_of_kinesis_that_lambda_gave_up_on(bench: Bench) -> None:
    outputs = bench.app.stack.outputs
    note = sample("enqueue_failed_batch_note")
    with closing(bench.app.stack.client("s3")) as s3, closing(bench.app.stack.client("sqs")) as sqs:
        body = json.dumps(sample("enqueue_failed_batch")).encode()
        s3.put_object(Bucket=outputs["KinesisFailuresBucket"], Key=note["detail"]["object"]["key"], Body=body)
        sqs.send_message(QueueUrl=outputs["KinesisFailuresUrl"], MessageBody=json.dumps(note))
        follow(bench, "Records of Kinesis are not stored")
        assert "Messages" not in sqs.receive_message(QueueUrl=outputs["KinesisFailuresUrl"])
    bench.consumed("orders-17", 2)


def test_a_wrong_seq(bench: Bench) -> None:
    bench.put("ivy", 0, 1, 1_700_000_000_000, 1_700_000_000_005)
    bench.consumed("ivy", 1)
    bench.file("right.jsonl", {"queue": "ivy", "seq": 2}, {"queue": "ivy", "seq": 3})
    follow(bench, "A message has a wrong seq")
    assert bench.delivered("ivy") == [0, 1, 2, 3]
