"""Many seeds on all cores: as fast as they go, until one fails or all are done."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from stream_sort.testing.simulation.failure import SimulationFailure
from stream_sort.testing.simulation.simulator import simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stream_sort.testing.simulation.simulator import RunReport

CHUNK = 50


@dataclass(slots=True)
class Soaked:
    """How far a soak came, what its seeds met, and the failure that ended it."""

    seeds: int = 0
    seconds: float = 0.0
    met: Counter[str] = field(default_factory=Counter)
    failure: SimulationFailure | None = None
    interrupted: bool = False

    @property
    def rate(self) -> float:
        """Seeds per second."""
        return self.seeds / self.seconds if self.seconds else 0.0


def soak(
    start: int,
    count: int,
    jobs: int = 0,
    progress: Callable[[Soaked], None] | None = None,
    run: Callable[[int], RunReport] = simulate,
) -> Soaked:
    """Run `count` seeds from `start`, each by `run`; an interrupt ends it with what was done so far."""
    began, done = time.monotonic(), Soaked()
    chunks = [range(first, min(first + CHUNK, start + count)) for first in range(start, start + count, CHUNK)]
    jobs = jobs or os.cpu_count() or 1
    context = multiprocessing.get_context("spawn")
    with context.Pool(jobs, initializer=_begin_worker) as pool:
        try:
            for part in pool.imap_unordered(partial(run_seeds, run), chunks):
                _add(done, part)
                done.seconds = time.monotonic() - began
                if progress:
                    progress(done)
                if done.failure:
                    break
        except KeyboardInterrupt:
            done.interrupted = True
    return done


def run_seeds(run: Callable[[int], RunReport], seeds: Iterable[int]) -> Soaked:
    """Run seeds one after the other, up to the first that fails."""
    done = Soaked()
    for seed in seeds:
        try:
            report = run(seed)
        except SimulationFailure as failure:
            done.failure = failure
            break
        done.seeds += 1
        done.met.update(report.met)
    return done


def _begin_worker() -> None:
    """Leave interrupts to the parent, and end with it: a pool's workers would go on if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _add(done: Soaked, part: Soaked) -> None:
    done.seeds += part.seeds
    done.met.update(part.met)
    done.failure = done.failure or part.failure
