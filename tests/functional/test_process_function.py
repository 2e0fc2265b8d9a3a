"""What process does with the cursor table's stream and its retry queue: to a sink, or to a user's handler."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws

from stream_sort import OrderedConsumer, SettingsError, StoreUnavailable, StreamSorter
from stream_sort.aws_lambda.handlers import load_handler
from stream_sort.stores.dynamodb.control_rows import key_of, place_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.functional.conftest import Context, Table, Told

pytestmark = pytest.mark.usefixtures("telemetries")

APP = Path(__file__).parents[2] / "functions" / "process" / "app.py"
CURSOR = "stream-sort-cursor"
ENVIRONMENT = {
    "AWS_REGION": "eu-west-1",
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "STREAM_SORT_ITEMS_TABLE": "stream-sort-items",
    "STREAM_SORT_CURSOR_TABLE": CURSOR,
    "STREAM_SORT_CONTROL_TABLE": "stream-sort-control",
    "STREAM_SORT_CONSUMER": "process",
}


class Deployed:
    """The function's own tables and queues, and the function as Lambda would load it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, context: Context) -> None:
        self._monkeypatch = monkeypatch
        self._context = context
        self.sorter = StreamSorter.from_env()
        self.sorter.create_tables()
        self.sorter.stores.control(ENVIRONMENT["STREAM_SORT_CONTROL_TABLE"]).create_table()
        self.sqs = boto3.client("sqs", region_name="eu-west-1")
        self.retry_url = self.sqs.create_queue(QueueName="stream-sort-retry")["QueueUrl"]
        self.put("orders-17", 0, 1, 2)
        self.put("orders-18", 0)

    def put(self, queue: str, *seqs: int) -> None:
        self.sorter.put_many([{"queue": queue, "seq": seq, "total": seq * 10} for seq in seqs])

    def load(self, **settings: str) -> Callable[[Any], Any]:
        for name, value in {"retry_queue_url": self.retry_url, **settings}.items():
            self._monkeypatch.setenv(f"STREAM_SORT_{name.upper()}", value)
        spec = importlib.util.spec_from_file_location("process_app", APP)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return lambda event: module.handler(event, self._context)

    def take(self, url: str) -> list[dict[str, Any]]:
        """The messages of a queue, which are gone then."""
        found: list[dict[str, Any]] = []
        while batch := self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["All"]).get(
            "Messages"
        ):
            found += batch
            for message in batch:
                self.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return found


@pytest.fixture
def deployed(monkeypatch: pytest.MonkeyPatch, context: Context) -> Iterator[Deployed]:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with mock_aws():
        yield Deployed(monkeypatch, context)


def test_released_messages_come_to_the_log_in_order(
    deployed: Deployed, sample: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert deployed.load(sink="log")(sample("process_cursor_stream")) == {"batchItemFailures": []}
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if '"sink"' in line]
    assert lines == [
        {"sink": "log", "queue": "orders-17", "after": -1, "through": 2, "count": 3},
        {"sink": "log", "queue": "orders-18", "after": -1, "through": 0, "count": 1},
    ]


def test_what_was_delivered_is_measured_and_no_payload_is_logged(deployed: Deployed, sample: Any, told: Told) -> None:
    process = deployed.load(sink="log")
    process(sample("process_cursor_stream"))
    assert told.metrics() == {"MessagesDelivered": 4, "StoreRequests": 12}
    process(sample("process_cursor_stream"))
    assert told.metrics() == {"StoreRequests": 2}
    assert "total" not in told.everything()


def test_released_messages_come_to_an_sqs_fifo_queue_in_order(deployed: Deployed, sample: Any) -> None:
    url = deployed.sqs.create_queue(QueueName="out.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    process = deployed.load(sink="sqs-fifo", sink_target=url)
    process(sample("process_cursor_stream"))
    deployed.put("orders-17", 4, 3)
    process(sample("process_retry_queue"))
    sent = deployed.take(url)
    bodies = [json.loads(message["Body"]) for message in sent]
    assert [body["seq"] for body in bodies if body["queue"] == "orders-17"] == [0, 1, 2, 3, 4]
    assert [body for body in bodies if body["queue"] == "orders-18"] == [{"queue": "orders-18", "seq": 0, "total": 0}]
    assert len({message["Attributes"]["MessageGroupId"] for message in sent}) == 2


def test_a_start_that_is_changed_later_is_ignored_and_logged_once(deployed: Deployed, sample: Any, told: Told) -> None:
    def ignored() -> list[tuple[str, str, str]]:
        found = [log for log in told.logs() if log["text"].startswith("start is ignored")]
        return [(log["consumer"], log["asked"], log["start"]) for log in found]

    deployed.load(sink="log", start="1")(sample("process_cursor_stream"))
    assert ignored() == []
    process = deployed.load(sink="log", start="latest")
    process(sample("process_cursor_stream"))
    process(sample("process_cursor_stream"))
    assert ignored() == [("process", "latest", "1")]


def test_a_wake_of_the_retry_queue_serves_its_queue_only(deployed: Deployed, sample: Any, told: Told) -> None:
    assert deployed.load(sink="log")(sample("process_retry_queue")) == {"batchItemFailures": []}
    measured = told.metrics()
    # The first run ever registers its consumer, and makes the checkpoint.
    assert measured == {"MessagesDelivered": 3, "StoreRequests": 7}


def test_a_sink_that_was_missing_is_given_all_once_it_is_there_and_the_queue_redriven(
    deployed: Deployed, sample: Any, told: Told
) -> None:
    url = "https://sqs.eu-west-1.amazonaws.com/123456789012/out.fifo"
    process = deployed.load(sink="sqs-fifo", sink_target=url, max_attempts="1", on_poison="dead_letter")
    assert process(sample("process_cursor_stream")) == {"batchItemFailures": []}
    assert told.metrics()["QueuesParked"] == 2
    assert {log["attempts"] for log in told.logs() if log["text"] == "queue parked"} == {0}
    again = process(sample("process_redrive"))
    assert (again["queues"], again["delivered"], again["failed"]) == (1, 0, 1)
    assert again["errors"][0]["error"].startswith("TryLater: queue 'orders-17', seq 0: SQS queue https")
    deployed.sqs.create_queue(QueueName="out.fifo", Attributes={"FifoQueue": "true"})
    done = process(sample("process_redrive"))
    assert done == {"queues": 1, "delivered": 3, "failed": 0, "errors": [], "left": 0}
    assert process({"redrive": "parked"})["delivered"] == 1
    assert len(deployed.take(url)) == 4


@pytest.fixture
def own_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], object]:
    """Writes the module `users_handler` where the function finds it."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "users_handler", raising=False)
    return (tmp_path / "users_handler.py").write_text


def test_a_users_own_handler_takes_the_place_of_the_sink(
    deployed: Deployed, sample: Any, own_code: Callable[[str], object], capsys: pytest.CaptureFixture[str]
) -> None:
    own_code("def handle(batch):\n    print('mine', batch.queue, *batch.seqs)\n")
    deployed.load(handler="users_handler:handle", sink="kinesis")(sample("process_cursor_stream"))
    assert "mine orders-17 0 1 2\nmine orders-18 0\n" in capsys.readouterr().out


def test_a_failing_handler_parks_its_queue_and_the_retry_queue_wakes_it(
    deployed: Deployed, sample: Any, own_code: Callable[[str], object], told: Told
) -> None:
    own_code("def handle(batch):\n    if 1 in batch.seqs:\n        raise ValueError('no')\n")
    process = deployed.load(handler="users_handler:handle")
    assert process(sample("process_cursor_stream")) == {"batchItemFailures": []}
    measured = told.metrics()
    assert (measured["QueuesParked"], measured["MessagesDelivered"]) == (1, 2)
    (log,) = [log for log in told.logs() if log["text"] == "queue parked"]
    assert (log["queue"], log["seq"], log["attempts"], log["error"]) == ("orders-17", 1, 2, "ValueError: no")
    attributes = deployed.sqs.get_queue_attributes(QueueUrl=deployed.retry_url, AttributeNames=["All"])["Attributes"]
    assert attributes["ApproximateNumberOfMessagesDelayed"] == "1"


OWN = """import json

def handle(batch):
    for message in batch:
        helper(message)

def helper(message):
    try:
        fetch(message)
    except OSError as error:
        raise KeyError("k1")

def fetch(message):
    raise OSError(f"payload {message['total']}")
"""


def parked_log(told: Told) -> dict[str, Any]:
    (log,) = [log for log in told.logs() if log["text"] == "queue parked"]
    return log


def test_a_parked_queue_is_logged_with_the_place_in_the_users_code_and_the_traceback(
    deployed: Deployed, sample: Any, own_code: Callable[[str], object], told: Told
) -> None:
    own_code(OWN)
    deployed.load(handler="users_handler:handle")(sample("process_retry_queue"))
    log = parked_log(told)
    assert (log["error"], log["at"]) == ("KeyError: 'k1'", "users_handler.py:11 in helper")
    assert "in fetch" in log["traceback"]
    assert log["traceback"].endswith("KeyError: 'k1'")
    # What was being handled when it was raised is named by its kind: its message may hold a payload.
    assert "OSError" in log["traceback"]
    assert "payload 0" not in log["traceback"]


def test_an_error_raised_in_a_library_is_placed_where_the_user_called_it(
    deployed: Deployed, sample: Any, own_code: Callable[[str], object], told: Told
) -> None:
    own_code("import json\ndef handle(batch):\n    json.loads('{')\n")
    deployed.load(handler="users_handler:handle")(sample("process_retry_queue"))
    assert parked_log(told)["at"] == "users_handler.py:3 in handle"


def test_an_effect_that_is_refused_has_no_place(
    deployed: Deployed, sample: Any, own_code: Callable[[str], object], told: Told
) -> None:
    own_code("def handle(batch):\n    return 'all'\n")
    deployed.load(handler="users_handler:handle")(sample("process_retry_queue"))
    log = parked_log(told)
    assert "says nothing" in log["error"]
    assert "at" not in log


def test_a_traceback_in_the_logs_is_bounded_and_keeps_its_end(
    deployed: Deployed, sample: Any, own_code: Callable[[str], object], told: Told
) -> None:
    names = [f"step_{number}_{'x' * 200}" for number in range(40)]
    steps = [f"def {name}(): {after}()\n" for name, after in zip(names, [*names[1:], "last"], strict=True)]
    own_code(f"def handle(batch): {names[0]}()\n{''.join(steps)}def last(): raise ValueError('deep')\n")
    deployed.load(handler="users_handler:handle")(sample("process_retry_queue"))
    log = parked_log(told)
    assert log["at"] == "users_handler.py:42 in last"
    assert len(log["traceback"]) <= 4_000
    assert log["traceback"].endswith("ValueError: deep")


def test_a_dead_letter_is_measured_and_logged(
    deployed: Deployed, sample: Any, own_code: Callable[[str], object], told: Told
) -> None:
    own_code("def handle(batch):\n    if 1 in batch.seqs:\n        raise ValueError('no')\n")
    deployed.load(handler="users_handler:handle", max_attempts="1", on_poison="dead_letter")(
        sample("process_cursor_stream")
    )
    measured = told.metrics()
    assert (measured["DeadLetters"], measured["MessagesDelivered"]) == (1, 3)
    assert [log["seq"] for log in told.logs() if log["text"] == "dead letter"] == [1]


def test_the_log_of_a_dead_letter_and_of_its_redrive_has_the_place_in_the_users_code(
    deployed: Deployed, sample: Any, own_code: Callable[[str], object], told: Told
) -> None:
    own_code("def handle(batch):\n    if 1 in batch.seqs:\n        raise ValueError('no')\n")
    function = deployed.load(handler="users_handler:handle", max_attempts="1", on_poison="dead_letter")
    function(sample("process_cursor_stream"))
    (dead,) = [log for log in told.logs() if log["text"] == "dead letter"]
    assert (dead["error"], dead["at"]) == ("ValueError: no", "users_handler.py:3 in handle")
    assert dead["traceback"].endswith("ValueError: no")
    answer = function({"redrive": {"queue": dead["queue"]}})
    (again,) = [log for log in told.logs() if log["text"] == "redrive failed"]
    assert (again["seq"], again["at"]) == (1, "users_handler.py:3 in handle")
    # Who asked for it gets what it always got.
    assert "at" not in answer["errors"][0]


def test_the_log_of_a_redrive_of_a_parked_queue_has_the_place_in_the_users_code(
    deployed: Deployed, sample: Any, own_code: Callable[[str], object], told: Told
) -> None:
    own_code("def handle(batch):\n    raise ValueError('no')\n")
    function = deployed.load(handler="users_handler:handle")
    function(sample("process_cursor_stream"))
    assert told.logs()
    function({"redrive": "parked"})
    failed = [log for log in told.logs() if log["text"] == "redrive failed"]
    assert {log["at"] for log in failed} == {"users_handler.py:2 in handle"}


def test_the_log_of_a_redrive_has_the_place_of_that_message_and_of_no_later_one(
    deployed: Deployed, sample: Any, own_code: Callable[[str], object], told: Told
) -> None:
    own_code(
        "def handle(batch):\n    if 1 in batch.seqs:\n        raise ValueError('no')\n"
        "    if 2 in batch.seqs:\n        raise KeyError('later')\n"
    )
    deployed.load(handler="users_handler:handle", max_attempts="1")(sample("process_cursor_stream"))
    told.logs()
    function = deployed.load(handler="users_handler:handle", max_attempts="1", on_poison="dead_letter")
    function({"redrive": "parked"})
    (failed,) = [log for log in told.logs() if log["text"] == "redrive failed"]
    assert (failed["seq"], failed["error"], failed["at"]) == (1, "ValueError: no", "users_handler.py:3 in handle")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("users_handler", "must be module:function"),
        ("users_handler:", "must be module:function"),
        (":handle", "must be module:function"),
        ("users handler:handle", "must be module:function"),
        ("users_handler.py:handle", "no module 'users_handler.py'"),
        ("nowhere:handle", "no module 'nowhere'"),
        ("users_handler:hand", "module 'users_handler' has no 'hand'"),
        ("users_handler:NUMBER", "it must be a function"),
        ("broken_handler:handle", "fails at import: ZeroDivisionError: division by zero"),
        ("needy_handler:handle", "needs 'numpyy', which is not installed"),
    ],
)
def test_a_handler_that_cannot_be_loaded_is_named(
    tmp_path: Path, own_code: Callable[[str], object], name: str, said: str
) -> None:
    own_code("NUMBER = 5\ndef handle(batch): ...\n")
    (tmp_path / "broken_handler.py").write_text("1 / 0")
    (tmp_path / "needy_handler.py").write_text("import numpyy")
    with pytest.raises(SettingsError, match=said):
        load_handler(name)


def test_a_method_of_an_object_may_be_the_handler(own_code: Callable[[str], object]) -> None:
    own_code("class Desk:\n    @staticmethod\n    def handle(batch):\n        return 5\n")
    assert load_handler("users_handler:Desk.handle")(None) == 5  # type: ignore[arg-type]


@pytest.fixture
def consumer(dynamo: Table) -> OrderedConsumer:
    """A consumer whose tables fail on command."""
    sorter = StreamSorter(cursor_table=CURSOR, client=dynamo.client, in_flight=1, deadline=0.02)
    sorter.create_tables()
    consumer = OrderedConsumer("process", lambda _: None, sorter=sorter)
    consumer.create_tables()
    sorter.put_many([{"queue": queue, "seq": 0} for queue in ("orders-17", "orders-18")])
    consumer.process([])
    return consumer


def test_only_records_whose_failure_could_not_be_recorded_are_reported_back(
    consumer: OrderedConsumer, dynamo: Table, sample: Any, context: Context, told: Told
) -> None:
    dynamo.fail("BatchGetItem", "orders-18")
    answer = consumer.lambda_handler(sample("process_cursor_stream"), context)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "4421584500000000017450439093"}]}
    measured = told.metrics()
    # How often the failing call is tried depends on the time it takes.
    assert measured.pop("StoreRequests") > 4
    assert (consumer.checkpoint("orders-17"), measured) == (0, {"MessagesDelivered": 1})
    assert [log["queue"] for log in told.logs() if log["text"] == "queue failed, reported back"] == ["orders-18"]


def test_a_queue_whose_checkpoint_row_is_damaged_is_logged_and_holds_up_no_shard(
    consumer: OrderedConsumer, dynamo: Table, sample: Any, context: Context, told: Told
) -> None:
    key = key_of(*place_of("process", "orders-18"))
    dynamo.client.put_item(TableName="Control", Item=key | {"queue": {"S": "orders-18"}})
    answer = consumer.lambda_handler(sample("process_cursor_stream"), context)
    assert (answer, consumer.checkpoint("orders-17")) == ({"batchItemFailures": []}, 0)
    (log,) = [log for log in told.logs() if log["text"] == "queue failed, and must be mended first"]
    assert log["queue"] == "orders-18"
    assert "a row without" in log["error"]


def test_when_every_queue_fails_the_error_is_raised(
    consumer: OrderedConsumer, dynamo: Table, sample: Any, context: Context
) -> None:
    dynamo.fail("BatchGetItem", "")
    for event in ("process_cursor_stream", "process_retry_queue"):
        with pytest.raises(StoreUnavailable):
            consumer.lambda_handler(sample(event), context)


def test_records_of_strangers_are_logged_and_not_reported_back(
    consumer: OrderedConsumer, sample: Any, context: Context, told: Told
) -> None:
    event = sample("process_cursor_stream")
    for record in event["Records"]:
        record["eventSourceARN"] = record["eventSourceARN"].replace(CURSOR, "another")
    assert consumer.lambda_handler(event, context) == {"batchItemFailures": []}
    assert [log["reason"] for log in told.logs()] == [f"a record of table 'another', not of {CURSOR!r}"] * 4
