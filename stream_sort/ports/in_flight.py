"""Several calls in flight at once, when there is more than one to make."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Job = TypeVar("Job")
Answer = TypeVar("Answer")


class InFlight:
    """Runs up to `limit` calls at once; with a limit of 1, one after the other in the caller's thread."""

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def map(self, call: Callable[[Job], Answer], jobs: Sequence[Job]) -> list[Answer]:
        """Return the answers, in the order of the jobs; the first error is raised after all calls have ended."""
        if self.limit == 1 or len(jobs) < 2:  # noqa: PLR2004  # one job gains nothing from a thread
            return [call(job) for job in jobs]
        # Each call in a context of its own, so that a time limit set around all of them holds in the threads, too.
        contexts = [copy_context() for _ in jobs]
        with ThreadPoolExecutor(min(self.limit, len(jobs)), thread_name_prefix="stream_sort") as pool:
            return list(pool.map(lambda context, job: context.run(call, job), contexts, jobs))
