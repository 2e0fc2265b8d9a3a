from __future__ import annotations

import os
import pickle
import subprocess
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import pytest

from stream_sort.errors import ReplayFailed, SettingsError
from stream_sort.replay.backfill.lease import EXPIRY, Lease, this_machine
from stream_sort.replay.backfill.ledger import Ledger, PartRecord
from stream_sort.replay.files.storage import Storage
from stream_sort.testing.clock import MovableClock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(str(tmp_path / "checkpoint"))


def take(storage: Storage, clock: MovableClock, machine: str = "here", pid: int | None = None) -> Lease:
    return Lease.take(storage, machine=machine, pid=os.getpid() if pid is None else pid, clock=clock)


def dead_process() -> int:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


def test_of_two_runs_the_second_is_refused_until_the_first_has_ended(storage: Storage) -> None:
    clock = MovableClock()
    first = take(storage, clock)
    clock.move(EXPIRY / 2)
    with pytest.raises(SettingsError, match=r"another run of this job is at work .* wait for it to end"):
        take(storage, clock)
    first.release()
    take(storage, clock).check()


def test_a_run_whose_process_is_dead_is_taken_over_at_once_and_may_commit_no_more(storage: Storage) -> None:
    clock, gone = MovableClock(), dead_process()
    first = take(storage, clock, pid=gone)
    second = take(storage, clock)
    second.check()
    left = pickle.loads(pickle.dumps(Ledger(storage, first)))
    with pytest.raises(ReplayFailed, match="another run of this job has taken over"):
        left.commit(PartRecord(0, (), ended=False))
    assert Ledger(storage).records() == {}


def test_what_a_run_that_was_followed_still_writes_takes_nothing_back(storage: Storage) -> None:
    class Held(Ledger):
        """The ledger of a run that stands still between its check and its write, while another one does the part."""

        def check_lease(self) -> None:
            super().check_lease()
            clock.move(2 * EXPIRY)
            follower = Ledger(storage, take(storage, clock, "there"))
            assert follower.record(0) is None
            follower.commit(PartRecord(0, (), ended=True))

    clock = MovableClock()
    Held(storage, take(storage, clock)).commit(PartRecord(0, (), ended=False))
    ledger = Ledger(storage)
    assert ledger.record(0) == PartRecord(0, (), ended=True)
    assert ledger.records() == {0: PartRecord(0, (), ended=True)}


def test_a_lease_is_above_those_of_all_records_though_its_files_were_deleted(storage: Storage) -> None:
    ledger, clock = Ledger(storage), MovableClock()
    assert ledger.last_lease() == 0
    take(storage, clock).release()
    second = take(storage, clock)
    Ledger(storage, second).commit(PartRecord(0, (), ended=False))
    storage.delete(second.name)
    third = Lease.take(storage, above=ledger.last_lease(), clock=clock)
    third.check()
    assert third.number == 3


def test_of_the_records_of_a_part_that_of_the_last_lease_counts_and_one_without_a_lease_least(storage: Storage) -> None:
    class Unchecked(Ledger):
        def check_lease(self) -> None:
            """As if each had looked while it was the last."""

    ledger, lease = Ledger(storage), take(storage, MovableClock())
    ledger.commit(PartRecord(0, (), ended=False))
    for number in (10_000_000, 9_999_999, 1):
        Unchecked(storage, replace(lease, number=number)).commit(PartRecord(0, (), ended=True, size=number))
        assert ledger.record(0) == ledger.records()[0] == PartRecord(0, (), ended=True, size=10_000_000)


def test_a_run_on_another_machine_is_taken_over_when_it_was_not_seen_for_long(storage: Storage) -> None:
    clock = MovableClock()
    first = take(storage, clock, machine="there", pid=dead_process())
    clock.move(EXPIRY - 1)
    first.renew()
    clock.move(EXPIRY - 1)
    with pytest.raises(SettingsError, match="on there"):
        take(storage, clock)
    clock.move(2)
    take(storage, clock)
    assert first.renew() is False


def test_a_run_that_was_overtaken_takes_nothing_from_the_one_after_next(storage: Storage) -> None:
    clock = MovableClock()
    first = take(storage, clock, pid=dead_process())
    take(storage, clock).release()
    third = take(storage, clock)
    first.release()
    assert first.renew() is False
    third.check()
    with pytest.raises(ReplayFailed):
        first.check()


def test_no_number_comes_twice_though_a_lease_was_given_back(storage: Storage) -> None:
    clock = MovableClock()
    first = take(storage, clock)
    first.release()
    assert not first.is_held()
    second = take(storage, clock)
    assert second.number == first.number + 1
    assert storage.list() == [second.name]


def test_a_run_that_paused_while_it_renewed_does_not_hold_beside_the_one_that_followed(storage: Storage) -> None:
    clock = MovableClock()
    first = take(storage, clock, machine="there")
    clock.move(EXPIRY + 1)
    second = take(storage, clock)
    # It had read that it holds before the pause, and writes now.
    storage.write(first.name, first.text())
    second.check()
    with pytest.raises(ReplayFailed, match="another run of this job has taken over"):
        first.check()
    second.release()
    third = take(storage, clock)
    assert storage.list() == [third.name]


def test_a_slow_run_does_not_hold_beside_one_that_died_while_it_took_over(storage: Storage) -> None:
    clock = MovableClock()
    slow = take(storage, clock, machine="there")
    died = replace(slow, number=slow.number + 1, owner="another")
    storage.put_if_absent(died.name, died.text())
    assert slow.renew() is False
    with pytest.raises(ReplayFailed):
        slow.check()


@dataclass(frozen=True)
class Overtaken:
    """A storage where something happens right after the first listing."""

    storage: Storage
    happenings: list[Callable[[], object]]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.storage, name)

    def list(self, prefix: str) -> list[str]:
        names = self.storage.list(prefix)
        if self.happenings:
            self.happenings.pop()()
        return names


@pytest.mark.parametrize("others", [1, 2, 3])
def test_a_run_that_looked_before_others_came_and_went_does_not_hold_beside_the_last(
    storage: Storage, others: int
) -> None:
    clock, held = MovableClock(), []

    def come_and_go() -> None:
        for _ in range(others):
            held[-1].release()
            held.append(take(storage, clock, machine="there"))

    # Not the first number: a count that begins anew would be below it.
    take(storage, clock, pid=dead_process())
    held.append(take(storage, clock))
    with pytest.raises(SettingsError, match="another run of this job is at work"):
        take(cast("Storage", Overtaken(storage, [come_and_go])), clock, machine="elsewhere")
    held[-1].check()


@pytest.mark.parametrize("name", [".DS_Store", "README", "1", "0000001.json", "00000001", "x/0000009"])
def test_files_of_other_names_beside_a_lease_are_left_alone(storage: Storage, name: str) -> None:
    storage.write(f"lease/{name}", b"x")
    lease = take(storage, MovableClock())
    lease.check()
    assert lease.number == 1
    assert storage.read(f"lease/{name}") == b"x"


@pytest.mark.parametrize("seen", ["NaN", "1e400", "1e15"])
def test_a_lease_that_would_never_end_says_which_file_to_delete(storage: Storage, seen: str) -> None:
    clock = MovableClock()
    storage.write("lease/0000004", f'{{"owner": "x", "machine": "there", "pid": 1, "seen": {seen}}}'.encode())
    with pytest.raises(SettingsError, match=r"If no run is alive, .* delete .*/checkpoint/lease/0000004,"):
        take(storage, clock)
    storage.delete("lease/0000004")
    take(storage, clock).check()


def test_a_lease_that_cannot_be_read_counts_as_nobodys(storage: Storage) -> None:
    storage.write("lease/0000001", b"{")
    take(storage, MovableClock()).check()


def test_a_process_that_cannot_be_is_dead(storage: Storage) -> None:
    clock = MovableClock()
    take(storage, clock, pid=10**30)
    take(storage, clock).check()


def test_a_time_that_no_number_can_tell_counts_as_nobodys(storage: Storage) -> None:
    storage.write("lease/0000001", b'{"owner": "x", "machine": "there", "pid": 1, "seen": 1%s}' % (b"0" * 400))
    take(storage, MovableClock()).check()


def test_a_machine_is_told_from_others_that_have_its_name() -> None:
    assert this_machine() == this_machine()
