"""The process function: hands released messages, in order, to the sink or to your own handler."""

import gc

# While modules load, nothing is garbage; looking for it all the same takes a tenth of a cold start.
gc.disable()

from stream_sort import OrderedConsumer, StreamSorter
from stream_sort.aws_lambda.handlers import handler_from_env
from stream_sort.aws_lambda.process import ProcessStep

# Built once a process, before the first event.
sorter = StreamSorter.from_env()
handler = ProcessStep.of(OrderedConsumer.from_env(handler_from_env(), sorter=sorter), sorter)

gc.freeze()
gc.enable()
