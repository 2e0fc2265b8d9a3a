"""Known-bad ways to withdraw a message: each leaves out one step, and the simulator must say so."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stream_sort.release import advancer
from stream_sort.stores.memory.withdrawals import MemoryWithdrawalStore
from stream_sort.testing.simulation.variant import Variant
from stream_sort.testing.simulation.world import World

if TYPE_CHECKING:
    from random import Random

    from stream_sort.model.records import Cursor
    from stream_sort.model.withdrawal import Withdrawal
    from stream_sort.stores.memory.tables import MemoryTables
    from stream_sort.testing.simulation.calls import Call


class _NoLookBefore(MemoryWithdrawalStore):
    def _is_beyond_a_gap(self, row: Cursor, seq: int) -> bool:
        return row.position < seq - 1


class _NoLookAtThePosition(MemoryWithdrawalStore):
    def _is_beyond_a_gap(self, row: Cursor, seq: int) -> bool:
        return seq - 1 not in self._tables.queue(row.queue).slots


class _Uncounted(MemoryWithdrawalStore):
    def withdraw(self, cursor: Cursor, wanted: Withdrawal) -> Withdrawal | None:
        done = super().withdraw(cursor, wanted)
        if done is not None:
            row = self._tables.cursors[wanted.queue]
            self._tables.cursors[wanted.queue] = replace(row, withdrawals=cursor.withdrawals)
        return done


class _TrustsItsOwn(advancer.Walk):
    def _forget_filled(self) -> None:
        """Forgets nothing."""


class _MovesWithoutCount(World):
    def apply(self, part: Call, rng: Random | None = None) -> Any:
        row = self.tables.cursors.get(str(part.queue)) if part.key == "cursors.move" else None
        if row is not None:
            cursor, *others = part.args
            part = replace(part, args=(replace(cursor, withdrawals=row.withdrawals), *others))
        return super().apply(part, rng)


def _keeping(store: type[MemoryWithdrawalStore]) -> type[World]:
    """A world that withdraws in another way."""

    class Keeping(World):
        def __init__(self, tables: MemoryTables | None = None) -> None:
            super().__init__(tables)
            self._ports["withdrawals"] = store(self.tables)

    return Keeping


WITHDRAW_MUTANTS = {
    mutant.name: mutant
    for mutant in (
        Variant("no-look-before", "a withdrawal does not look at the predecessor", world=_keeping(_NoLookBefore)),
        Variant("withdrawn-released", "a withdrawal ignores the position", world=_keeping(_NoLookAtThePosition)),
        Variant("uncounted-withdrawal", "a withdrawal is not counted on the row", world=_keeping(_Uncounted)),
        Variant("trusted-own", "a writer trusts what it stored before a withdrawal", walk=_TrustsItsOwn),
        Variant("uncounted-move", "a move does not look at the count of withdrawals", world=_MovesWithoutCount),
    )
}
