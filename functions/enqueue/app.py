"""The enqueue function: stores messages from SQS, Kinesis, SNS, EventBridge, HTTP and direct invokes."""

import gc

# While modules load, nothing is garbage; looking for it all the same takes a tenth of a cold start.
gc.disable()

from stream_sort import StreamSorter
from stream_sort.aws_lambda.dead_letter_queue import DeadLetterQueue
from stream_sort.aws_lambda.enqueue import Enqueue
from stream_sort.aws_lambda.telemetry import Telemetry
from stream_sort.settings import EnqueueSettings

# Built once a process, before the first event.
sorter = StreamSorter.from_env()
url = EnqueueSettings.from_env().dead_letters_url
handler = Enqueue(sorter, Telemetry("enqueue", sorter.requests), DeadLetterQueue(url) if url else None)

gc.freeze()
gc.enable()
