"""Where an in-order batch can go. A sink is a handler: it sends a batch on, or says how far it got."""

from __future__ import annotations

from stream_sort.sinks.choose import make_sink

__all__ = ["make_sink"]
