"""The sweep of a deployed stack: a sorter in, the wired step out. Its consumer is that of the environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_sort.aws_lambda.sweep import SweepStep
from stream_sort.consume.registration import Registration
from stream_sort.model.consumption import check_start
from stream_sort.settings import ConsumerSettings
from stream_sort.upkeep.lag_watch import LagWatch
from stream_sort.upkeep.sweeper import Sweeper

if TYPE_CHECKING:
    from stream_sort.aws_lambda.telemetry import Telemetry
    from stream_sort.sorter import Sorter


def scheduled_sweep(sorter: Sorter, telemetry: Telemetry) -> SweepStep:
    """The step that sweeps a sorter's queues and watches over consumers, the stack's own from the first day."""
    settings = ConsumerSettings.from_env()
    start = check_start(settings.start)
    control, cursors = sorter.homes.only.control(settings.control_table), sorter.homes.only.cursors
    subscriptions, checkpoints = control.subscriptions, control.checkpoints
    registration = Registration(subscriptions, checkpoints, cursors, sorter.clock, sorter.in_flight)
    watcher = LagWatch(subscriptions, checkpoints, cursors)

    def register() -> None:
        registration.introduce(settings.consumer, start)

    return SweepStep(Sweeper(sorter, lagging=watcher), watcher, register, telemetry)
