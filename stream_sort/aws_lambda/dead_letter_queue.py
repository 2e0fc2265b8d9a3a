"""An SQS queue that keeps records which can never be stored, and which their stream would drop."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from stream_sort.aws.errors import code_of, status_of
from stream_sort.aws.sqs import SqsSender
from stream_sort.aws_lambda.receipts import is_own_fault
from stream_sort.errors import StoreUnavailable

if TYPE_CHECKING:
    from stream_sort.errors import StreamSortError

# What SQS takes for text, and how SQS says that it does not take this one.
TEXT = re.compile("[\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]+")
REFUSALS = ("InvalidParameterValue", "InvalidMessageContents")
TOO_LARGE = 413
LONGEST_REASON = 1_000


class DeadLetterQueue:
    """Keeps records as they came, so that they can be mended and redriven, each with the reason beside it."""

    def __init__(self, url: str, client: Any = None) -> None:
        self._sender = SqsSender(url, client)

    def keep(self, record: dict[str, Any], error: StreamSortError) -> None:
        """Keep a record of Kinesis; StoreUnavailable if it could not be kept, and must come again.

        One that SQS does not take, such as one over its size, is named: the stream has it until its retention is over.
        Unless it may yet be stored: then it has to come again.
        """
        place = {"stream": str(record.get("eventSourceARN")), "record": str(record.get("eventID"))}
        body, encoding = _body(record["kinesis"]["data"])
        facts = {"source": "kinesis", "error": type(error).__name__, "reason": _plain(str(error)), **place}
        try:
            if not body or not self._send(body, facts | {"encoding": encoding}):
                if not is_own_fault(error):
                    raise StoreUnavailable(
                        f"record {place['record']} is too large for {self._sender.url}, and may yet be stored",
                        operation="SendMessage",
                    )
                data = record["kinesis"]["data"]
                size = len(data) * 3 // 4 - data.count("=")
                self._send(json.dumps({"omitted_bytes": size} | place), facts | {"encoding": "none"})
        except (ClientError, BotoCoreError) as problem:
            raise StoreUnavailable(
                f"record {place['record']} could not be kept in {self._sender.url}: {problem}; it has to come again",
                operation="SendMessage",
            ) from problem

    def _send(self, body: str, facts: dict[str, str]) -> bool:
        """Return True if SQS takes it."""
        attributes = {name: {"DataType": "String", "StringValue": value} for name, value in facts.items()}
        try:
            self._sender.send(body, MessageAttributes=attributes)
        except ClientError as error:
            # SQS will never take this body; the way to it may not even take the request.
            is_refusal = status_of(error) == TOO_LARGE or code_of(error) in REFUSALS
            if not is_refusal or facts["encoding"] == "none":
                raise
            return False
        return True


def _body(data: str) -> tuple[str, str]:
    """Return what a record held, as text if it is text that SQS takes, else as it came."""
    try:
        text = b64decode(data, validate=True).decode()
    except ValueError:
        return data, "base64"
    return (text, "text") if TEXT.fullmatch(text) else (data, "base64")


def _plain(reason: str) -> str:
    return "".join(TEXT.findall(reason))[:LONGEST_REASON] or "unknown"
