"""Lambda events: of every source of enqueue, of the streams and queues behind it, by hand and by the schedule."""

from __future__ import annotations

import binascii
import json
import os
from base64 import b64decode, b64encode
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from hypothesis import strategies as st

from stream_sort import OrderedConsumer, Pace, StreamSorter
from stream_sort.aws_lambda.advance import AdvanceStep
from stream_sort.aws_lambda.enqueue import EnqueueStep
from stream_sort.aws_lambda.receipts import put
from stream_sort.aws_lambda.refused_events import unwrap
from stream_sort.aws_lambda.sweep import SweepStep
from stream_sort.aws_lambda.telemetry import Telemetry
from tests.properties.fuzz.target import Target
from tests.properties.fuzz.values import TEXTS, VALUES, WHOLE, documents, mangled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hypothesis.strategies import SearchStrategy

EVENTS = Path(__file__).parents[3] / "events"
QUEUES = st.sampled_from(["a", "b", "orders-17"]) | TEXTS
# Words that events are made of, so that what takes a part's place is half an event now and then.
WORDS = st.sampled_from(
    [
        *("queue", "seq", "messages", "Records", "eventSource", "aws:sqs", "aws:kinesis", "aws:sns", "aws:dynamodb"),
        *("messageId", "body", "kinesis", "data", "Sns", "Message", "dynamodb", "Keys", "NewImage", "S", "N"),
        *("SequenceNumber", "detail", "requestContext", "redrive", "parked", "consumer", "INSERT", "_ss_x", "all"),
    ]
)
PARTS = VALUES | documents(WORDS | TEXTS, WORDS | WHOLE | TEXTS)
MESSAGES = st.fixed_dictionaries(
    {"queue": QUEUES, "seq": WHOLE}, optional={"x": PARTS, "queue ": PARTS, "_ss_at": WHOLE}
)
CONTENTS = mangled(MESSAGES | st.lists(MESSAGES, max_size=4) | st.fixed_dictionaries({"messages": st.lists(MESSAGES)}))
BODIES = CONTENTS.map(json.dumps) | TEXTS
CELLS = st.fixed_dictionaries({"S": QUEUES}) | st.fixed_dictionaries({"N": WHOLE.map(str) | TEXTS})
ROWS = st.fixed_dictionaries({"queue": CELLS, "seq": CELLS})


def _samples(*steps: str) -> SearchStrategy[Any]:
    found = [json.loads(path.read_text()) for step in steps for path in sorted(EVENTS.glob(f"{step}_*.json"))]
    return st.sampled_from(found)


def _sample(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((EVENTS / f"{name}.json").read_text())
    return found


def _batch(record: SearchStrategy[Any]) -> SearchStrategy[Any]:
    return st.fixed_dictionaries({"Records": st.lists(record, min_size=1, max_size=4)})


def _sqs(body: str, name: str) -> Any:
    return {"messageId": name, "body": body, "eventSource": "aws:sqs", "attributes": {}}


def _kinesis(body: str, name: str) -> Any:
    data = b64encode(body.encode(errors="surrogatepass")).decode()
    return {"eventSource": "aws:kinesis", "kinesis": {"sequenceNumber": name, "data": data}}


def _sns(body: str, name: str) -> Any:
    notification = {"Type": "Notification", "TopicArn": "arn", "MessageId": name, "Message": body}
    return {"EventSource": "aws:sns", "Sns": notification}


def _request(body: str, method: str, encoded: bool) -> Any:  # noqa: FBT001  # a field of the event
    context = {"http": {"method": method}}
    return {"version": "2.0", "requestContext": context, "body": body, "isBase64Encoded": encoded}


def _stream(keys: Any, image: Any, name: str, kind: str) -> Any:
    change = {"Keys": keys, "NewImage": image, "SequenceNumber": name}
    return {"eventSource": "aws:dynamodb", "eventName": kind, "dynamodb": change}


NAMES = st.sampled_from(["1", "2", "3"]) | TEXTS
SNS = st.builds(_sns, BODIES, NAMES)
INTAKE = st.one_of(
    CONTENTS,
    *(_batch(st.builds(make, BODIES, NAMES)) for make in (_sqs, _kinesis)),
    _batch(st.builds(lambda record, name: _sqs(json.dumps(record["Sns"]), name), SNS, NAMES)),
    _batch(SNS),
    st.fixed_dictionaries({"detail": CONTENTS | BODIES, "detail-type": TEXTS, "source": TEXTS, "id": NAMES}),
    st.builds(_request, BODIES, st.sampled_from(["POST", "GET"]), st.booleans()),
)
KINDS = st.sampled_from(["INSERT", "MODIFY", "REMOVE"])
CHANGES = _batch(st.builds(_stream, ROWS, ROWS, NAMES, KINDS))
RETRIES = _batch(
    st.builds(
        lambda queue, name: _sqs(json.dumps({"consumer": "process", "queue": queue}), name), QUEUES | VALUES, NAMES
    )
)
REDRIVES = st.fixed_dictionaries(
    {"redrive": st.just("parked") | st.fixed_dictionaries({"queue": QUEUES}, optional={"seq": WHOLE})}
)


def check_enqueue(event: Any) -> None:
    """What is stored is among what was given, and the answer is JSON."""
    given = {repr(one) for one in _documents_in(event)}
    sorter = StreamSorter.in_memory()
    try:
        _check_answer(EnqueueStep(sorter, _telemetry("enqueue"))(event, None))
    finally:
        stored = [
            item.document for queue in sorter.stores.items._tables.queues.values() for item in queue.entries().values()
        ]
        assert {repr(document) for document in stored} <= given


def check_advance(event: Any) -> None:
    """Answers, and moves nothing but over what is there."""
    sorter = _filled()
    _check_answer(AdvanceStep(sorter, _telemetry("advance"))(event, None))
    assert sorter.position("orders-17") == 2


def check_process(event: Any) -> None:
    """Delivers in order, whatever it is woken by."""
    seen: dict[str, list[int]] = {}

    def handle(batch: Any) -> None:
        seen.setdefault(batch.queue, []).extend(message["seq"] for message in batch)

    pace = Pace(sleep=lambda _: None)
    consumer = OrderedConsumer("process", handle, sorter=_filled(), pace=pace)
    try:
        _check_answer(consumer.lambda_handler(event, None))
    finally:
        assert all(seqs == list(range(3)) for seqs in seen.values())


def check_sweep(event: Any) -> None:
    """Sweeps, whatever the schedule says."""
    step = SweepStep.of(_filled())
    step._telemetry = _telemetry("sweep")
    _check_answer(step(event, None))


@contextmanager
def _variables() -> Iterator[None]:
    told = {"STREAM_SORT_CONTROL_TABLE": "Control", "POWERTOOLS_METRICS_NAMESPACE": "Fuzz"}
    with patch.dict(os.environ, told):
        yield


def check_refused_event(example: dict[str, Any]) -> None:
    """Whatever lies in a dead-letter queue is taken apart without an error; what is in it is stored or refused."""
    sorter = _filled()
    attributes = {name: value for name, value in example["attributes"].items() if isinstance(value, str)}
    event = unwrap(json.dumps(example["body"]), attributes, sorter.options.keys)
    assert isinstance(event.problem(sorter.options.keys), str)
    receipts = put(sorter, event.messages)
    assert len(receipts) == len(event.messages)
    if event.place is not None:
        assert event.place.is_kinesis in {True, False}


@cache
def _telemetry(step: str) -> Telemetry:
    return Telemetry(f"fuzz {step}")


def _filled() -> StreamSorter:
    sorter = StreamSorter.in_memory()
    sorter.put_many({"queue": queue, "seq": seq} for queue in ("a", "orders-17") for seq in (0, 1, 2, 5))
    return sorter


def _check_answer(answer: Any) -> None:
    """As Lambda sends it: JSON in UTF-8; but a record is told by the very name that its source gave it."""
    own = {name: told for name, told in (answer or {}).items() if name != "batchItemFailures"}
    json.loads(json.dumps(own, ensure_ascii=False, allow_nan=False).encode())


def _documents_in(value: Any) -> Iterator[Any]:
    """Every object of an event, those in its texts included."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _documents_in(inner)
    for text in _texts(value) if isinstance(value, str) else ():
        try:
            yield from _documents_in(json.loads(text))
        except (ValueError, RecursionError):
            continue


def _texts(text: str) -> Iterator[str | bytes]:
    yield text
    try:
        yield b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return


WRAPPED = st.builds(lambda event: {**_sample("enqueue_failed_event"), "requestPayload": event}, INTAKE)
SET_ASIDE = st.fixed_dictionaries(
    {"source": st.just("kinesis"), "encoding": st.sampled_from(["text", "base64", "none"])},
    optional={"stream": TEXTS, "record": TEXTS, "error": TEXTS, "reason": TEXTS},
)
REFUSED = st.fixed_dictionaries(
    {
        "body": mangled(WRAPPED | INTAKE | _samples("enqueue_failed", "advance_failed"), PARTS),
        "attributes": st.just({}) | SET_ASIDE,
    }
)

TARGETS = (
    Target("refused_event", REFUSED, check_refused_event),
    Target("enqueue", mangled(INTAKE | _samples("enqueue"), PARTS), check_enqueue),
    Target("advance", mangled(CHANGES | _samples("advance"), PARTS), check_advance),
    Target("process", mangled(CHANGES | RETRIES | REDRIVES | _samples("process"), PARTS), check_process),
    Target("sweep", mangled(_samples("sweep", "enqueue") | PARTS, PARTS), check_sweep, _variables),
)
