"""The ways in which a simulation can be unkind: what may be lost, and what is promised all the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.simulation.archive import mishaps

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from tests.simulation.archive.world import World

    Mishap = Callable[[World, Random], None]


@dataclass(frozen=True, slots=True)
class Mode:
    """What may happen beside crashes. `is_mended` is whether the next run must mend it.

    `exchanges` is whether files may be others than those that runs have written; `trims` is how many runs trim.
    """

    name: str
    summary: str
    mishaps: tuple[Mishap, ...] = ()
    is_mended: bool = False
    exchanges: bool = False
    trims: float = 0.35


LOSSES: tuple[Mishap, ...] = (
    mishaps.lose_all_plans,
    mishaps.lose_a_plan,
    mishaps.lose_the_last_plan,
    mishaps.lose_a_mark,
    mishaps.lose_a_segment,
    mishaps.lose_some_files,
    mishaps.lose_the_watermark,
    mishaps.set_the_watermark_back,
    mishaps.copy_in_part,
)
# Most of them exchange.
EXCHANGES: tuple[Mishap, ...] = (*LOSSES, *[mishaps.exchange_a_segment] * 2 * len(LOSSES))
MODES = {
    mode.name: mode
    for mode in (
        Mode("crash", "runs die, and nothing is lost"),
        Mode(
            "promised", "only that is lost which the next run mends", (mishaps.lose_what_can_be_mended,), is_mended=True
        ),
        Mode("lossy", "files or the watermark are lost, one way at a time", LOSSES),
        Mode("harsh", "several files are lost at once, whichever", (mishaps.lose_whatever,)),
        Mode("exchanged", "segments are exchanged for others", EXCHANGES, exchanges=True, trims=0.7),
    )
}
