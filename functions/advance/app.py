"""The advance function: releases what the items table's stream shows to be stored."""

from stream_sort import StreamSorter
from stream_sort.aws_lambda.advance import AdvanceQueues
from stream_sort.aws_lambda.telemetry import Telemetry

# Built once a process, before the first event.
handler = AdvanceQueues(StreamSorter.from_env(), Telemetry("advance"))
