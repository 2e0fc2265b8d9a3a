"""The advance function: releases what the items table's stream shows to be stored."""

import gc

# While modules load, nothing is garbage; looking for it all the same takes a tenth of a cold start.
gc.disable()

from stream_sort import StreamSorter
from stream_sort.aws_lambda.advance import AdvanceStep

# Built once a process, before the first event.
sorter = StreamSorter.from_env()
handler = AdvanceStep.of(sorter)

gc.freeze()
gc.enable()
