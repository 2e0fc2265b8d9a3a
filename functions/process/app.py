"""The process function: hands released messages, in order, to the sink or to your own handler."""

import gc

# While modules load, nothing is garbage; looking for it all the same takes a tenth of a cold start.
gc.disable()

import stream_sort.aws_lambda.process  # noqa: F401  # now, not with the first event
from stream_sort import OrderedConsumer
from stream_sort.aws_lambda.handlers import load_handler
from stream_sort.settings import SinkSettings
from stream_sort.sinks import make_sink

# Built once a process, before the first event.
settings = SinkSettings.from_env()
handle = load_handler(settings.handler) if settings.handler else make_sink(settings)
handler = OrderedConsumer.from_env(handle).lambda_handler

gc.freeze()
gc.enable()
