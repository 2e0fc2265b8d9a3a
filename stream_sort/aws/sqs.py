"""SQS queues that functions send to: wakes of a consumer, and whatever else is not to be lost."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from stream_sort.aws.clients import answered, service_client
from stream_sort.errors import StoreUnavailable
from stream_sort.model.retries import LONGEST_DELAY


@dataclass(frozen=True)
class SqsSender:
    """Sends messages to an SQS queue, and gives up within seconds: its caller has a run to finish."""

    url: str
    given: Any = None

    @cached_property
    def client(self) -> Any:
        """The client, made when first needed: most runs never send anything."""
        retries = {"mode": "standard", "total_max_attempts": 2}
        return self.given or service_client("sqs", connect_timeout=2, read_timeout=3, retries=retries)

    def send(self, body: str, **options: Any) -> None:
        """Send a message; an error of botocore's if SQS does not say that it has it."""
        answered(self.client.send_message, "MessageId", QueueUrl=self.url, MessageBody=body, **options)


class RetryQueue:
    """A Waker on an SQS queue that feeds the consumer's own function.

    Each message names a consumer and one of its queues, and comes when its time has come.
    """

    def __init__(self, url: str, consumer: str, client: Any = None) -> None:
        self._sender = SqsSender(url, client)
        self._consumer = consumer

    def wake(self, queue: str, delay: float) -> None:
        """See Waker; StoreUnavailable if the message could not be sent."""
        body = json.dumps({"consumer": self._consumer, "queue": queue})
        try:
            self._sender.send(body, DelaySeconds=math.ceil(min(max(delay, 0.0), LONGEST_DELAY)))
        except (ClientError, BotoCoreError) as error:
            raise StoreUnavailable(
                f"no wake could be sent to {self._sender.url}: {error}; the sweep wakes the queue instead",
                operation="SendMessage",
            ) from error
