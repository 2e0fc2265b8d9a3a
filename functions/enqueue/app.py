"""The enqueue function: stores messages from SQS, Kinesis, SNS, EventBridge, HTTP and direct invokes."""

from stream_sort import StreamSorter
from stream_sort.aws_lambda.enqueue import Enqueue
from stream_sort.aws_lambda.telemetry import Telemetry

# Built once a process, before the first event.
handler = Enqueue(StreamSorter.from_env(), Telemetry("enqueue"))
