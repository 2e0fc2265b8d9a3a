"""Where the job meets Spark, AWS and threads: in a simulation all of it happens in memory, and in one thread."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from stream_sort.ports import in_flight
from stream_sort.replay.archive import job
from stream_sort.replay.audit import archive_survey as audit
from stream_sort.replay.files import storage
from stream_sort.replay.origins.archive.owner import Owner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from tests.simulation.archive.fuse import T
    from tests.simulation.archive.world import World

OWNER = Owner("arn", "id")
# All that anybody asks it for, where parts are not run by it.
SPARK = cast("SparkSession", SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=2)))


class OneThread(ThreadPoolExecutor):
    """A pool that does everything itself, in order: a seed always takes the same course, in half the time."""

    def map(self, fn: Callable[..., T], *iterables: Iterable[Any], **_: Any) -> Iterator[T]:
        return iter([fn(*arguments) for arguments in zip(*iterables, strict=False)])


@contextmanager
def installed(world: World) -> Iterator[pytest.MonkeyPatch]:
    """The job, its readers and the audit work in this world, for as long as the context lasts."""

    def run_parts(_: SparkSession, parts: Sequence[Any], task: Callable[[Any], Any]) -> Iterator[Any]:
        """Executors take parts in any order."""
        for part in world.rng.sample(parts, len(parts)):
            yield task(part)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job, "run_parts", run_parts)
        patch.setattr(audit, "run_parts", run_parts)
        patch.setattr(storage, "_place", lambda _: world.files)
        patch.setattr(Owner, "of", lambda _: OWNER)
        patch.setattr(in_flight, "ThreadPoolExecutor", OneThread)
        yield patch
