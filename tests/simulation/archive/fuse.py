"""How a process dies: right behind one of the changes that it makes to tables and files."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Crash(BaseException):
    """The process is dead. Not an Exception: nothing in it may catch its own death."""


class Fuse:
    """Lets so many changes through, then kills whoever makes them. To die before a change is to die behind the last."""

    def __init__(self) -> None:
        self._left: int | None = None

    def set(self, changes: int) -> None:
        """Die behind the change with this number; at least 1."""
        self._left = changes

    def remove(self) -> None:
        """From now on nobody dies."""
        self._left = None

    def through(self, change: Callable[[], T]) -> T:
        """Make a change, and perhaps die; who is dead changes nothing any more."""
        if self._left == 0:
            raise Crash
        done = change()
        if self._left is not None:
            self._left -= 1
            if self._left == 0:
                raise Crash
        return done
