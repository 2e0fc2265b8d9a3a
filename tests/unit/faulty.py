"""A DynamoDB client that fails as it is told to, and what such tests say again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from stream_sort.model.message import KeyNames, check_message
from stream_sort.model.records import Arrival

if TYPE_CHECKING:
    from collections.abc import Callable

THROTTLE = "ProvisionedThroughputExceededException"
DUPLICATE = {"Error": {"Code": "DuplicateItem"}}
THROTTLED = {"Error": {"Code": "ThrottlingError"}}


class Faulty:
    """A client that fails as it is told to, before or after a call was done."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.meta = client.meta
        self.before: dict[str, list[Exception]] = {}
        self.after: dict[str, list[Exception]] = {}
        self.answers: dict[str, list[Callable[[dict[str, Any]], dict[str, Any]]]] = {}
        self.calls: list[str] = []
        self.watch: Callable[[str, dict[str, Any]], None] = lambda *_: None

    def __getattr__(self, method: str) -> Any:
        def call(**request: Any) -> Any:
            self.calls.append(method)
            self.watch(method, request)
            if self.before.get(method):
                raise self.before[method].pop(0)
            if self.answers.get(method):
                return self.answers[method].pop(0)(request)
            body = getattr(self._client, method)(**request)
            if self.after.get(method):
                raise self.after[method].pop(0)
            return body

        return call


def refusal(code: str, status: int = 400, operation: str = "PutItem", says: str = "so it is") -> ClientError:
    error = {"Error": {"Code": code, "Message": says}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(error, operation)  # type: ignore[arg-type]


def message(seq: int, **fields: Any) -> dict[str, Any]:
    return {"queue": "q", "seq": seq, **fields}


def arrival(seq: int) -> Arrival:
    return Arrival(check_message(message(seq), KeyNames()), -1)


def statements(request: dict[str, Any], *answers: dict[str, Any]) -> dict[str, Any]:
    assert len(request["Statements"]) == len(answers)
    return {"Responses": list(answers)}
