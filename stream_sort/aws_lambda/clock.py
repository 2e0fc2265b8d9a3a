"""How long Lambda lets a function run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def time_left_of(context: Any) -> Callable[[], float] | None:
    """Asks for the seconds until Lambda ends this run; None outside Lambda."""
    ask = getattr(context, "get_remaining_time_in_millis", None)
    return (lambda: ask() / 1000) if callable(ask) else None
