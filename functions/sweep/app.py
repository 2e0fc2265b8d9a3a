"""Once a minute: apply gap policies, free stuck queues, wake consumers that sleep. Built once, at cold start."""

from stream_sort import StreamSorter, Sweeper
from stream_sort.aws_lambda.sweep import SweepStep
from stream_sort.aws_lambda.telemetry import Telemetry
from stream_sort.core.consumption import check_start
from stream_sort.inflight import InFlight
from stream_sort.registrar import Registrar
from stream_sort.settings import ConsumerSettings
from stream_sort.watcher import Watcher

settings = ConsumerSettings.from_env()
sorter = StreamSorter.from_env()
control = sorter.stores.control(settings.control_table)
watcher = Watcher(control, sorter.stores.cursors)
registrar = Registrar(control, sorter.stores.cursors, sorter.clock, InFlight(sorter.options.in_flight))
telemetry = Telemetry("sweep", sorter.stores.requests)


def register() -> None:
    """Make this stack's consumer known."""
    registrar.register(settings.consumer, check_start(settings.start))


handler = SweepStep(Sweeper(sorter, lagging=watcher), watcher, register, telemetry)
