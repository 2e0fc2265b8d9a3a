"""Sinks that take several messages a call: EventBridge and Lambda go on where they got stuck."""

from __future__ import annotations

import io
import itertools
import json
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.response import StreamingBody
from moto import mock_aws

from stream_sort.errors import HandlerProblem, PartlyDone
from stream_sort.model.batch import Batch
from stream_sort.settings import SinkSettings
from stream_sort.sinks import make_sink
from tests.functional.batches import SEQS, batch_of, deliver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.functional.batches import Sink


class Bus:
    """Answers PutEvents as EventBridge does: each entry is taken or fails for itself."""

    def __init__(self, failing: set[int]) -> None:
        self.failing = failing
        self.asked = 0
        self.calls: list[list[int]] = []
        self.taken: list[int] = []

    def put_events(self, Entries: list[dict[str, str]]) -> dict[str, Any]:  # noqa: N803  # the SDK's name
        self.calls.append([json.loads(entry["Detail"])["seq"] for entry in Entries])
        return {"Entries": [self._take(seq) for seq in self.calls[-1]]}

    def _take(self, seq: int) -> dict[str, str]:
        self.asked += 1
        if self.asked - 1 in self.failing:
            return {"ErrorCode": "InternalFailure", "ErrorMessage": "try again"}
        self.taken.append(seq)
        return {"EventId": "e"}


def test_eventbridge_goes_on_at_the_first_event_that_failed_whichever_do() -> None:
    for failing in itertools.product([False, True], repeat=len(SEQS)):
        bus = Bus({index for index, fails in enumerate(failing) if fails})
        sink = make_sink(SinkSettings(sink="eventbridge", sink_target="default"), bus)
        deliver(sink, batch_of())
        again = SEQS[failing.index(True) :] if any(failing) else ()
        assert bus.calls == ([list(SEQS), list(again)] if again else [list(SEQS)])
        assert set(bus.taken) == set(SEQS)


def test_eventbridge_takes_ten_a_call_and_no_more_than_fit_together() -> None:
    bus = Bus(set())
    sink = make_sink(SinkSettings(sink="eventbridge", sink_target="default"), bus)
    sink(batch_of("ada", tuple(range(25)), -1, 24))
    assert [len(call) for call in bus.calls] == [10, 10, 5]
    large = tuple({"seq": seq, "text": "x" * 100_000} for seq in range(5))
    bus.calls.clear()
    sink(Batch(queue="ada", after=-1, through=4, messages=large, seqs=tuple(range(5))))
    assert bus.calls == [[0, 1], [2, 3], [4]]


def test_the_bus_takes_events_with_source_type_and_the_message_as_detail() -> None:
    with mock_aws():
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        events = boto3.client("events", region_name="eu-west-1", **keys)
        requests: list[dict[str, Any]] = []
        events.meta.events.register(
            "provide-client-params.events.PutEvents", lambda params, **_: requests.append(params)
        )
        sink = make_sink(SinkSettings(sink="eventbridge", sink_target="default"), events)
        assert sink(batch_of()) is None
        events.close()
    labels = {"EventBusName": "default", "Source": "stream_sort", "DetailType": "message"}
    (request,) = requests
    assert [json.loads(entry.pop("Detail")) for entry in request["Entries"]] == list(batch_of().messages)
    assert request["Entries"] == [labels] * len(SEQS)


class Function:
    """Invokes `handle` as Lambda does; a function that raises is answered with HTTP 200 and its error."""

    def __init__(self, handle: Callable[[dict[str, Any]], Any]) -> None:
        self.handle = handle
        self.events: list[dict[str, Any]] = []

    def invoke(self, *, FunctionName: str, InvocationType: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803  # SDK
        assert (FunctionName, InvocationType) == ("handle", "RequestResponse")
        self.events.append(json.loads(Payload))
        try:
            answer, failed = self.handle(self.events[-1]), {}
        except ValueError as error:
            answer, failed = {"errorType": "ValueError", "errorMessage": str(error)}, {"FunctionError": "Unhandled"}
        body = json.dumps(answer).encode()
        return {"StatusCode": 200, "Payload": StreamingBody(io.BytesIO(body), len(body)), **failed}


def lambda_sink(handle: Callable[[dict[str, Any]], Any]) -> tuple[Sink, Function]:
    function = Function(handle)
    return make_sink(SinkSettings(sink="lambda", sink_target="handle"), function), function


@pytest.mark.parametrize("answer", [None, "ok", {"statusCode": 200}, {"last_done": None}, {"last_done": 8}])
def test_a_function_gets_the_batch_and_any_answer_means_done(answer: Any) -> None:
    sink, function = lambda_sink(lambda _: answer)
    assert sink(batch_of()) is None
    assert function.events == [
        {"queue": "ada", "after": 2, "through": 8, "seqs": list(SEQS), "messages": list(batch_of().messages)}
    ]


def test_a_function_may_say_how_far_it_got_and_sees_only_the_rest_again() -> None:
    for steps in itertools.product(range(1, len(SEQS) + 1), repeat=len(SEQS)):
        sizes, done = iter(steps), list[int]()

        def some(event: dict[str, Any], sizes: Iterator[int] = sizes, done: list[int] = done) -> dict[str, int]:
            done.extend(event["seqs"][: next(sizes)])
            return {"last_done": done[-1]}

        deliver(lambda_sink(some)[0], batch_of())
        assert done == list(SEQS)


def test_a_function_that_fails_is_named_with_its_error() -> None:
    def fail(_: dict[str, Any]) -> None:
        raise ValueError("no such account")

    with pytest.raises(HandlerProblem, match=r"seq 3: Lambda function handle: .*ValueError: no such account"):
        lambda_sink(fail)[0](batch_of())


@pytest.mark.parametrize("answer", [1, 9, "4", [4], 4.0])
def test_a_last_done_that_cannot_be_is_a_failure(answer: Any) -> None:
    with pytest.raises(HandlerProblem, match=r"last_done is .*2 to 8"):
        lambda_sink(lambda _: {"last_done": answer})[0](batch_of())


def test_true_is_no_seq() -> None:
    with pytest.raises(HandlerProblem, match="last_done is True"):
        lambda_sink(lambda _: {"last_done": True})[0](batch_of("ada", (1, 2), 0, 2))


def test_a_function_that_did_nothing_is_a_failure() -> None:
    with pytest.raises(HandlerProblem, match="did none"):
        lambda_sink(lambda _: {"last_done": 2})[0](batch_of())


def test_a_batch_over_the_payload_limit_is_cut_into_calls_that_join_up() -> None:
    messages = tuple({"seq": seq, "text": "x" * 2_500_000} for seq in (0, 1, 3, 4, 6))
    batch = Batch(queue="ada", after=-1, through=9, messages=messages, seqs=(0, 1, 3, 4, 6))
    sink, function = lambda_sink(lambda _: None)
    assert sink(batch) is None
    ranges = [(event["after"], event["seqs"], event["through"]) for event in function.events]
    assert ranges == [(-1, [0, 1], 1), (1, [3, 4], 4), (4, [6], 9)]

    def fail_later(event: dict[str, Any]) -> None:
        if event["after"] > 0:
            raise ValueError("full")

    with pytest.raises(PartlyDone) as stopped:
        lambda_sink(fail_later)[0](batch)
    assert stopped.value.last_done == 1
    assert "seq 3" in str(stopped.value.__cause__)
