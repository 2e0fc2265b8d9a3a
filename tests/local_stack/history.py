"""A checker of histories: given what was sent and what came out, in order, it counts everything that went wrong."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise


@dataclass(slots=True)
class Verdict:
    """Counts of what must not be (lost, gaps, reordered, strange, checkpoints that went back), and of repeats."""

    sent: int = 0
    delivered: int = 0
    lost: int = 0
    strange: int = 0
    reordered: int = 0
    gaps: int = 0
    checkpoints_back: int = 0
    repeats: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.strange or self.reordered or self.gaps or self.checkpoints_back)

    def __str__(self) -> str:
        counts = ("sent", "delivered", "lost", "strange", "reordered", "gaps", "checkpoints_back", "repeats")
        told = ", ".join(f"{getattr(self, name):,} {name.replace('_', ' ')}" for name in counts)
        return told + "".join(f"\n  {example}" for example in self.examples[:10])


@dataclass(slots=True)
class History:
    """What happened to queues that start at seq 0: noted as it is seen, judged at the end."""

    sent: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    delivered: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    checkpoints: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def judge(self) -> Verdict:
        """A repeat must start at or before what was next, and go on without a gap from there."""
        verdict = Verdict(sum(map(len, self.sent.values())), sum(map(len, self.delivered.values())))
        for queue in sorted({*self.sent, *self.delivered}):
            self._judge_queue(queue, verdict)
        for queue, seen in self.checkpoints.items():
            for before, after in pairwise(seen):
                if after < before:
                    verdict.checkpoints_back += 1
                    verdict.examples.append(f"{queue}: the checkpoint went from {before} back to {after}")
        return verdict

    def _judge_queue(self, queue: str, verdict: Verdict) -> None:
        expected, last = 0, -1
        for seq in self.delivered[queue]:
            if seq not in self.sent[queue]:
                verdict.strange += 1
                verdict.examples.append(f"{queue}: {seq} was never sent")
            elif seq > expected:
                verdict.gaps += 1
                verdict.examples.append(f"{queue}: {seq} came when {expected} was next")
            elif seq < expected:
                verdict.repeats += 1
                if seq > last + 1:
                    verdict.reordered += 1
                    verdict.examples.append(f"{queue}: {seq} came again after {last}, not after {seq - 1}")
            expected, last = max(expected, seq + 1), seq
        missing = self.sent[queue] - set(self.delivered[queue])
        verdict.lost += len(missing)
        verdict.examples += [f"{queue}: {len(missing)} lost, first {min(missing)}"] if missing else []
