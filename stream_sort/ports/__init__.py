"""What the services need from the outside, as Protocols with numbered guarantees.

The numbers are what `stream_sort.testing.contracts` tests, one test a number, against every adapter.
All of them: a call that fails raises StoreUnavailable or another StoreError; it never answers "empty".
"""

from __future__ import annotations

from stream_sort.ports.control import Checkpoints, ControlStores, DeadLetters, Subscriptions
from stream_sort.ports.cursors import CursorStore, HeadReader
from stream_sort.ports.homes import Home, Homes
from stream_sort.ports.items import ItemStore
from stream_sort.ports.surroundings import Clock, Lagging, Waker
from stream_sort.ports.withdrawals import WithdrawalStore

__all__ = [
    "Checkpoints",
    "Clock",
    "ControlStores",
    "CursorStore",
    "DeadLetters",
    "HeadReader",
    "Home",
    "Homes",
    "ItemStore",
    "Lagging",
    "Subscriptions",
    "Waker",
    "WithdrawalStore",
]
