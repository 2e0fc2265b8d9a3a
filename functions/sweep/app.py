"""The sweep function: applies gap policies, frees stuck queues, wakes consumers that sleep."""

import gc

# While modules load, nothing is garbage; looking for it all the same takes a tenth of a cold start.
gc.disable()

from stream_sort import StreamSorter
from stream_sort.aws_lambda.sweep import SweepStep

# Built once a process, before the first event.
sorter = StreamSorter.from_env()
handler = SweepStep.of(sorter)

gc.freeze()
gc.enable()
