"""All targets, by name."""

from __future__ import annotations

from tests.properties.fuzz import archives, arguments, events, exports, texts

TARGETS = {target.name: target for module in (events, texts, exports, archives, arguments) for target in module.TARGETS}
