"""Whose fault it is when a sink takes no message: the target's, which passes, or the message's own."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import (
    ClientError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
    ReadTimeoutError,
)

from stream_sort.errors import HandlerProblem, PartlyDone, TryLater
from stream_sort.model.batch import Batch
from stream_sort.settings import SinkSettings
from stream_sort.sinks import make_sink
from tests.unit.test_sinks import TARGETS

if TYPE_CHECKING:
    from collections.abc import Callable

BATCH = Batch("ada", -1, 1, ({"queue": "ada", "seq": 0}, {"queue": "ada", "seq": 1}), (0, 1))


def refusal(code: str, status: int = 400, says: str = "no") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": says}, "ResponseMetadata": {"HTTPStatusCode": status}}, "Op")  # type: ignore[arg-type]  # as it comes


class Failing:
    """A client whose calls succeed so often, and then fail."""

    def __init__(self, error: Exception, after: int = 0) -> None:
        self._error = error
        self._left = after

    def __getattr__(self, operation: str) -> Callable[..., dict[str, Any]]:
        def call(**request: Any) -> dict[str, Any]:
            del request
            self._left -= 1
            if self._left < 0:
                raise self._error
            return {"MessageId": "1", "SequenceNumber": "1"}

        return call


class Answering:
    """A client that gives one answer."""

    def __init__(self, **answer: Any) -> None:
        self._answer = answer

    def __getattr__(self, operation: str) -> Callable[..., dict[str, Any]]:
        return lambda **_: self._answer


def failure(sink: str, client: Any) -> Exception:
    with pytest.raises(HandlerProblem) as caught:
        make_sink(SinkSettings(sink=sink, sink_target=TARGETS[sink]), client)(BATCH)
    return caught.value


SINKS = [sink for sink in TARGETS if sink != "log"]


@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize(
    "error",
    [
        refusal("AWS.SimpleQueueService.NonExistentQueue"),
        refusal("ResourceNotFoundException"),
        refusal("NotFound", 404),
        refusal("AccessDenied", 403),
        refusal("AccessDeniedException"),
        refusal("KmsDisabled"),
        refusal("ThrottlingException"),
        refusal("ProvisionedThroughputExceededException"),
        refusal("TooManyRequestsException", 429),
        refusal("InternalFailure", 500),
        refusal("SomethingNew", 503),
        refusal("ExpiredTokenException"),
        NoCredentialsError(),
        EndpointConnectionError(endpoint_url="https://x"),
        ReadTimeoutError(endpoint_url="https://x"),
    ],
    ids=str,
)
def test_a_target_that_is_missing_closed_or_out_of_reach_is_no_messages_fault(sink: str, error: Exception) -> None:
    told = failure(sink, Failing(error))
    assert isinstance(told, TryLater)
    assert "queue 'ada', seq 0" in str(told)
    assert told.__cause__ is error


@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize(
    "error",
    [
        refusal("InvalidMessageContents"),
        refusal("InvalidParameterValue"),
        refusal("AWS.SimpleQueueService.InvalidParameterValue"),
        refusal("InvalidParameter"),
        refusal("InvalidArgumentException"),
        refusal("ValidationException"),
        refusal("RequestTooLargeException", 413),
        refusal("InvalidRequestContentException"),
        refusal("RequestEntityTooLarge", 413),
        ParamValidationError(report="no"),
    ],
    ids=str,
)
def test_what_the_target_finds_wrong_with_a_message_is_its_own_fault(sink: str, error: Exception) -> None:
    assert type(failure(sink, Failing(error))) is HandlerProblem


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("Invalid parameter: TopicArn", TryLater),
        ("Invalid parameter: TargetArn Reason: no endpoint found for the target arn specified", TryLater),
        ("Invalid parameter: Message too long", HandlerProblem),
        ("Invalid parameter: MessageGroupId Reason: TopicArn", HandlerProblem),
    ],
)
def test_a_topic_of_another_region_gives_no_message_up(said: str, kind: type[Exception]) -> None:
    assert type(failure("sns-fifo", Failing(refusal("InvalidParameter", says=said)))) is kind


@pytest.mark.parametrize("sink", ["sqs-fifo", "sns-fifo", "kinesis"])
def test_an_outage_in_the_middle_of_a_batch_says_how_far_it_got(sink: str) -> None:
    told = failure(sink, Failing(refusal("ServiceUnavailable", 503), after=1))
    assert isinstance(told, PartlyDone)
    assert (told.last_done, type(told.__cause__)) == (0, TryLater)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("ThrottlingException", TryLater),
        ("InternalFailure", TryLater),
        ("MalformedDetail", HandlerProblem),
        ("InvalidArgument", HandlerProblem),
    ],
)
def test_an_event_that_a_bus_refuses_is_judged_by_its_code(code: str, kind: type[Exception]) -> None:
    entries = [{"ErrorCode": code, "ErrorMessage": "no"}, {"EventId": "2"}]
    assert type(failure("eventbridge", Answering(Entries=entries))) is kind


@pytest.mark.parametrize(
    ("error_type", "kind"),
    [
        ("ValueError", HandlerProblem),
        ("Sandbox.Timedout", HandlerProblem),
        ("Runtime.ExitError", HandlerProblem),
        ("Runtime.ImportModuleError", TryLater),
        ("Runtime.UserCodeSyntaxError", TryLater),
        ("Runtime.HandlerNotFound", TryLater),
    ],
)
def test_a_function_that_never_began_is_no_messages_fault(error_type: str, kind: type[Exception]) -> None:
    payload = io.BytesIO(json.dumps({"errorType": error_type, "errorMessage": "no"}).encode())
    assert type(failure("lambda", Answering(FunctionError="Unhandled", Payload=payload))) is kind
