"""How large the next chunk is: smaller and smaller around a failure, until the message at fault stands alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(slots=True)
class ChunkSize:
    """The number of slots in the next chunk, `most` at the most.

    Up to `suspect` it does not grow: the message at fault is somewhere before it.
    """

    most: int
    size: int = 0
    suspect: float = -math.inf

    def __post_init__(self) -> None:
        self.size = self.size or self.most

    def grow(self, done: int) -> None:
        """Allow larger chunks: one that ends at `done` succeeded."""
        if done >= self.suspect:
            self.size = min(self.most, self.size * 2)

    def halve(self, undone: Sequence[int]) -> None:
        """Halve the next chunk: one failed, and any of these seqs may be at fault."""
        self.suspect = undone[-1]
        self.size = max(1, len(undone) // 2)

    def limit(self, undone: Sequence[int]) -> None:
        """Halve all chunks from now on: so many messages are too many in any."""
        self.halve(undone)
        self.most = self.size

    def focus(self, after: int, seq: int) -> None:
        """End the next chunk with this message, which is at fault."""
        self.suspect = seq
        self.size = max(1, min(self.most, seq - after))

    def crawl(self, through: int) -> None:
        """Take messages one by one up to there: any may be at fault, and must not be tried with another."""
        self.suspect = through
        self.size = 1

    def reset(self) -> None:
        """Begin anew: the message at fault is out of the way."""
        self.size = self.most
