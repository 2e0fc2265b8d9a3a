"""Shipped for users' own tests: contracts of the ports, a movable clock, the simulator.

Each name is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_sort.lazy_names import lazy_names

if TYPE_CHECKING:
    from stream_sort.testing.clock import MovableClock
    from stream_sort.testing.own_handler import Simulated, simulate
    from stream_sort.testing.simulation.failure import SimulationFailure

__all__ = ["MovableClock", "Simulated", "SimulationFailure", "simulate"]

_MODULES = {
    "MovableClock": "clock",
    "Simulated": "own_handler",
    "SimulationFailure": "simulation.failure",
    "simulate": "own_handler",
}

__getattr__, __dir__ = lazy_names(__name__, _MODULES)
