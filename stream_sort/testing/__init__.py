"""Shipped for users' own tests: contracts of the ports, a movable clock, the simulator.

Each name is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stream_sort.testing.clock import MovableClock
    from stream_sort.testing.own_handler import Simulated, simulate
    from stream_sort.testing.simulation.failure import SimulationFailure

__all__ = ["MovableClock", "Simulated", "SimulationFailure", "simulate"]

_HOMES = {
    "MovableClock": "clock",
    "Simulated": "own_handler",
    "SimulationFailure": "simulation.failure",
    "simulate": "own_handler",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
