"""The pieces that a simulation runs: the production services, or a mutant that replaces one of them."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from unittest.mock import patch

from stream_sort.aws_lambda.wakes import WakeReader
from stream_sort.consume import consumer
from stream_sort.consume.delivery import Delivery
from stream_sort.consume.registration import Registration
from stream_sort.release import advancer
from stream_sort.sorter import Sorter
from stream_sort.testing.simulation import consumers, operations
from stream_sort.testing.simulation.calls import Recorder
from stream_sort.testing.simulation.world import World
from stream_sort.upkeep.sweeper import Sweeper

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Variant:
    """The pieces of a simulation; those of the services take the place of our own while they are installed."""

    name: str
    summary: str
    world: type[World] = World
    recorder: type[Recorder] = Recorder
    sorter: type[Sorter] = Sorter
    walk: type[advancer.Walk] = advancer.Walk
    sweeper: type[Sweeper] = Sweeper
    delivery: type[Delivery] = Delivery
    reader: type[WakeReader] = WakeReader
    registration: type[Registration] = Registration

    def command(self, what: str) -> str:
        """Return the command that shows it again; the known-bad ones are in our own tests."""
        if self.name:
            return f"python -m tests.simulation {what} --mutant {self.name}"
        return f"python -m stream_sort.testing {what}"

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Replace pieces of the services for as long as the context lasts."""
        walk = patch.object(advancer, "Walk", self.walk)
        delivery = patch.object(consumer, "Delivery", self.delivery)
        registration = patch.object(consumers, "Registration", self.registration)
        reader = patch.object(consumers, "WakeReader", self.reader)
        with walk, delivery, registration, reader, patch.object(operations, "Sweeper", self.sweeper):
            yield


PRODUCTION = Variant("", "the services as they ship")
