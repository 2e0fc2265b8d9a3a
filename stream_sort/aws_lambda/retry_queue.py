"""A Waker on an SQS queue: each message names a consumer and one of its queues, and comes when its time has come."""

from __future__ import annotations

import json
import math
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from stream_sort.aws.answers import answered
from stream_sort.aws_lambda.sqs_client import make_sqs_client
from stream_sort.errors import StoreUnavailable
from stream_sort.model.attempts import LONGEST_DELAY


class RetryQueue:
    """Sends wakes to an SQS queue that feeds the consumer's own function."""

    def __init__(self, url: str, consumer: str, client: Any = None) -> None:
        self._url = url
        self._consumer = consumer
        self._client = client

    def wake(self, queue: str, delay: float) -> None:
        """See Waker; StoreUnavailable if the message could not be sent."""
        body = json.dumps({"consumer": self._consumer, "queue": queue}, ensure_ascii=False)
        seconds = math.ceil(min(max(delay, 0.0), LONGEST_DELAY))
        try:
            request = {"QueueUrl": self._url, "MessageBody": body, "DelaySeconds": seconds}
            answered(self._sqs().send_message, "MessageId", **request)
        except (ClientError, BotoCoreError) as error:
            raise StoreUnavailable(
                f"no wake could be sent to {self._url}: {error}; the sweep wakes the queue instead",
                operation="SendMessage",
            ) from error

    def _sqs(self) -> Any:
        if self._client is None:
            # Made when first needed: most runs never park a queue.
            self._client = make_sqs_client()
        return self._client
