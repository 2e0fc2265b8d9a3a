"""The enqueue function: stores messages from SQS, Kinesis, SNS, EventBridge, HTTP and direct invokes."""

import gc

# While modules load, nothing is garbage; looking for it all the same takes a tenth of a cold start.
gc.disable()

from stream_sort import StreamSorter
from stream_sort.aws_lambda.enqueue import EnqueueStep

# Built once a process, before the first event.
sorter = StreamSorter.from_env()
handler = EnqueueStep.of(sorter)

gc.freeze()
gc.enable()
