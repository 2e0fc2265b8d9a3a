"""The checker that judges the deployed app finds what it is there to find."""

import pytest

from tests.local_stack.history import History


def judged(delivered: list[int], sent: int = 5, checkpoints: tuple[int, ...] = ()) -> dict[str, int]:
    history = History()
    history.sent["q"] = set(range(sent))
    history.delivered["q"] = delivered
    history.checkpoints["q"] = list(checkpoints)
    verdict = history.judge()
    names = ("lost", "strange", "reordered", "gaps", "checkpoints_back", "repeats")
    return {name: getattr(verdict, name) for name in names if getattr(verdict, name)}


@pytest.mark.parametrize(
    ("delivered", "found"),
    [
        ([0, 1, 2, 3, 4], {}),
        ([0, 1, 2, 1, 2, 3, 4], {"repeats": 2}),
        ([0, 1, 2, 3], {"lost": 1}),
        ([0, 1, 3, 4], {"lost": 1, "gaps": 1}),
        ([0, 2, 1, 3, 4], {"gaps": 1, "repeats": 1}),
        ([0, 1, 2, 3, 4, 5], {"strange": 1}),
        ([0, 1, 2, 3, 0, 2, 3, 4], {"repeats": 3, "reordered": 1}),
        ([], {"lost": 5}),
    ],
)
def test_a_history_is_judged(delivered: list[int], found: dict[str, int]) -> None:
    assert judged(delivered) == found


def test_a_checkpoint_that_goes_back_is_found() -> None:
    assert judged([0, 1, 2, 3, 4], checkpoints=(0, 3, 3, 2, 4)) == {"checkpoints_back": 1}


def test_what_must_not_be_makes_a_verdict_unclean_and_is_shown() -> None:
    history = History()
    history.sent["q"] = {0, 1}
    history.delivered["q"] = [1, 0]
    verdict = history.judge()
    assert not verdict.is_clean
    assert "q: 1 came when 0 was next" in str(verdict)
