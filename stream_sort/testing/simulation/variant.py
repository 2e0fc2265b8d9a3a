"""Which pieces a simulation runs: the production services, or a mutant that replaces one of them."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from stream_sort import advancer
from stream_sort.sorter import Sorter
from stream_sort.testing.simulation.calls import Recorder
from stream_sort.testing.simulation.world import World


@dataclass(frozen=True, slots=True)
class Variant:
    """The pieces of a simulation; `walk` takes the place of the advancer's own walk while it is installed."""

    name: str
    summary: str
    world: type[World] = World
    recorder: type[Recorder] = Recorder
    sorter: type[Sorter] = Sorter
    walk: type | None = None

    def installed(self) -> AbstractContextManager[Any]:
        """Put the walk into its place for as long as the context lasts."""
        return patch.object(advancer, "_Walk", self.walk) if self.walk else nullcontext()


PRODUCTION = Variant("", "the services as they ship")
