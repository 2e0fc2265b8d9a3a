"""Tries examples of a target: by hypothesis, or with atheris, which looks for those that run code not run before."""

from __future__ import annotations

import math
import random
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.properties.fuzz.cases import CASES, Case, keep

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.properties.fuzz.target import Target

ROUND = 500
SEEDS, LONGEST = 64, 8_192
DIED = "the process died"
PHASES = (Phase.explicit, Phase.generate, Phase.target, Phase.shrink)


class Finding(NamedTuple):
    """What was raised, and the file of the example."""

    problem: str
    path: Path


@dataclass(slots=True)
class Trial:
    """Tries examples and counts them; the last one that failed is remembered.

    With a `diary`, each is kept there while it is tried: what ends the process can still be read afterwards.
    """

    target: Target
    diary: Path | None = None
    ends: float = math.inf
    tried: int = 0
    failed: list[Any] = field(default_factory=list)

    def __call__(self, example: Any) -> None:
        if time.monotonic() > self.ends and not self.failed:
            # Hypothesis has no clock of its own; what is left of its round is as good as tried.
            return
        self.tried += 1
        note = keep(Case(self.target.name, DIED, example), self.diary) if self.diary else None
        try:
            self.target.try_example(example)
        except KeyboardInterrupt:
            raise
        except BaseException:
            self.failed = [example]
            raise
        finally:
            if note:
                note.unlink()

    def kept(self, error: BaseException, folder: Path = CASES) -> Finding:
        """Keep the example that failed."""
        problem = f"{type(error).__name__}: {str(error)[:300]}"
        return Finding(problem, keep(Case(self.target.name, problem, self.failed[0]), folder))


def hunt(
    target: Target, seconds: float, folder: Path = CASES, *, number: int = 0, diary: Path | None = None
) -> tuple[Trial, Finding | None]:
    """Try examples for a time, each round with a seed of its own from `number` on; ends with the first finding."""
    trial = Trial(target, diary)
    with target.at_work():
        trial.ends = time.monotonic() + seconds
        while time.monotonic() < trial.ends:
            number += 1
            try:
                seed(number)(property_of(target, trial, max_examples=ROUND, phases=PHASES))()
            except BaseException as error:
                if not trial.failed:
                    raise
                return trial, trial.kept(error, folder)
    return trial, None


def hunt_with_atheris(target: Target, seconds: float, folder: Path = CASES) -> None:
    """Let libFuzzer choose the examples; ends the process: 0 without a finding, else what libFuzzer ends with."""
    import atheris  # noqa: PLC0415  # where it is installed

    trial = Trial(target)

    def noted(example: Any) -> None:
        try:
            trial(example)
        except BaseException as error:
            sys.__stderr__.write(f"{trial.kept(error, folder).path}\n")
            raise

    fuzz: Callable[[bytes], object] = property_of(target, noted).hypothesis.fuzz_one_input
    with tempfile.TemporaryDirectory() as corpus, target.at_work():
        # From short input nothing but the simplest examples can be made.
        for number in range(SEEDS):
            (Path(corpus) / str(number)).write_bytes(random.Random(number).randbytes(LONGEST // (1 + number % 8)))
        limits = (f"-max_total_time={max(1, int(seconds))}", f"-max_len={LONGEST}", "-len_control=0", "-timeout=300")
        atheris.Setup([sys.argv[0], corpus, f"-artifact_prefix={corpus}/", *limits], fuzz)
        atheris.Fuzz()


def property_of(target: Target, trial: Callable[[Any], None], **how: Any) -> Any:
    """The property that every example passes, as hypothesis runs it."""

    def every_example_passes(example: Any) -> None:
        trial(example)

    # What is too slow is seen by the clock of the target.
    quiet = {
        "database": None,
        "deadline": None,
        "report_multiple_bugs": False,
        "suppress_health_check": list(HealthCheck),
    }
    return settings(**{**quiet, **how})(given(target.examples)(every_example_passes))
