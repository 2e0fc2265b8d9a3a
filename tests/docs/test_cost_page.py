"""The figures of docs/cost.md are those of the command: its example, its tables, its formulas, its prices."""

from __future__ import annotations

import re
import shlex
from math import ceil, fsum
from pathlib import Path
from typing import Any

import pytest

from stream_sort.insight.costing import sweeps
from stream_sort.insight.costing.formula import HOURS, MARK, MARK_SWEPT, Load, monthly
from stream_sort.insight.costing.prices import PRICES
from stream_sort.insight.costing.work import Work, read_units
from tests.functional.command_line import Line

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "cost.md").read_text()
LOADS = re.findall(r"^\| ([^|]+) \| `(--[^`]+)` \| (.+) \|$", TEXT, re.MULTILINE)
# So many messages that sweeps do not show.
MANY = 1e12


def put(load: Load) -> Work:
    steps = monthly(load)
    return (steps["enqueue"] + steps["advance"]) * (1 / load.messages)


def figures_of(told: dict[str, Any]) -> list[str]:
    """What a row of the table of loads says."""
    work = told["a_message"]["in all"]
    dynamodb = sum(line["usd"] for line in told["bill"] if line["name"] in ("write-units", "read-units"))
    units = [f"{work[name]:.2f}" for name in ("requests", "write_units", "read_units")]
    return [*units, f"{dynamodb:.2f}", f"{told['usd']['a_month']:.2f}"]


def test_the_example_prints_what_the_page_shows() -> None:
    (command,) = re.findall(r"^\$ \.venv/bin/stream-sort (cost --messages 10M --batch .+)$", TEXT, re.MULTILINE)
    (page,) = re.findall(r"^```text\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    assert words_of(page) in words_of(Line().run(*shlex.split(command)).stdout)


def test_the_code_of_the_page_runs() -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    found: dict[str, Any] = {}
    exec(compile(block, "docs/cost.md", "exec"), found)
    steps = monthly(Load(MANY, found["batch"], found["size"]))
    whole = (steps["enqueue"] + steps["advance"] + steps["process"]) * (1 / MANY)
    assert numbers(whole) == pytest.approx((found["requests"], found["write_units"], found["read_units"]))
    assert f"the other {found['million']:.2f} USD" in TEXT
    assert f"about {found['million']:.2f} USD for a million messages" in words_of((ROOT / "README.md").read_text())


def test_the_price_in_the_readme_says_what_it_leaves_out() -> None:
    readme = words_of((ROOT / "README.md").read_text())
    assert "in DynamoDB, about 0.66 USD for a million messages" in readme
    whole = Line().json("cost", "--messages", "1M")["usd"]["a_month"]
    assert f"With a million messages a month, the whole stack as it comes costs {whole:.2f} USD" in readme


@pytest.mark.parametrize(("name", "options", "figures"), LOADS)
def test_a_typical_load_costs_what_the_page_says(name: str, options: str, figures: str) -> None:
    told = Line().json("cost", "--messages", "10M", *shlex.split(options))
    assert figures.split(" | ") == figures_of(told), f"{name}: {' | '.join(figures_of(told))}"


def test_there_are_loads_to_check() -> None:
    assert len(LOADS) >= 10


@pytest.mark.parametrize(("batch", "size"), [(1, 300), (100, 300), (60, 3_000), (100, 40_000)])
def test_the_formulas_of_a_put_are_those_of_the_page(batch: int, size: int) -> None:
    store = formula("store a batch of `b` messages", b=batch, size=size)
    several = "release a queue of which the batch has several messages"
    release = formula(several if batch > 1 else "release a queue of which it has one, in order")
    assert numbers(put(Load(MANY, batch, size)) * batch) == approx(store + release)


@pytest.mark.parametrize("shuffled", [1, 2, 5, 10])
def test_the_formula_of_disorder_is_that_of_the_page(shuffled: int) -> None:
    harmonic = fsum(1 / place for place in range(1, shuffled + 1))
    store = formula("store a batch of `b` messages", b=1, size=300)
    release = formula("the same, shuffled by `n`, on average", n=shuffled, H=harmonic)
    assert numbers(put(Load(MANY, shuffled=shuffled))) == approx(store + release)


@pytest.mark.parametrize(("batch", "size"), [(1, 300), (100, 300), (100, 3_000), (20, 40_000)])
def test_the_formulas_of_a_delivery_are_those_of_the_page(batch: int, size: int) -> None:
    chunk = formula("and for each chunk of `k` messages, 100 or 1 MB at most", k=batch, size=size)
    assert numbers(monthly(Load(MANY, batch, size))["process"] * (batch / MANY)) == approx(
        formula("wake a consumer") + chunk
    )


@pytest.mark.parametrize(("queues", "consumers"), [(1, 1), (40, 1), (250, 2)])
def test_the_formulas_of_sweeps_are_those_of_the_page(queues: int, consumers: int) -> None:
    often, seldom = (Load(MANY, queues=queues, consumers=consumers, sweep_minutes=minutes) for minutes in (1, 2))
    between = monthly(often)["sweep"] + monthly(seldom)["sweep"] * -1
    a_sweep = formula("sweep `q` queues that all moved since the last time, 500 at most", q=queues, c=consumers)
    assert numbers(between * (1 / seldom.sweeps)) == approx(a_sweep)
    # That of all queues asks for their names instead of for those that wait.
    rest = monthly(often)["sweep"] + a_sweep * -(often.sweeps + HOURS)
    each = formula("sweep all queues, once an hour, besides: each queue") * queues
    names = Work(1, 0, read_units(queues * sweeps.ROW_BYTES) / 2) + sweeps.WAITING * -1
    assert numbers(rest * (1 / HOURS)) == approx(each + names)


@pytest.mark.parametrize(("moved", "active", "consumers"), [(1, 1, 1), (20, 300, 2), (950, 2_000, 1)])
def test_the_formulas_of_many_queues_are_those_of_the_page(moved: int, active: int, consumers: int) -> None:
    many = formula("sweep more, of which `q` moved since and `a` within the hour", q=moved, a=active, c=consumers)
    assert numbers(sweeps.WAITING + sweeps.watch(200_000, consumers, moved, active)) == approx(many)
    part = formula("and for 500 of all others, if it is their turn", c=consumers)
    assert numbers(sweeps.in_turn(200_000, consumers, moved, 60) * (1 / 60)) == approx(part)
    idle = formula("sweep `q` queues of which none moved, 500 at most", q=200, c=consumers)
    assert numbers(sweeps.WAITING + sweeps.watch(200, consumers, 0, 0)) == approx(idle)


def test_what_it_costs_to_be_listed_as_active_is_what_the_page_says() -> None:
    assert formula("list a queue as active, once an hour in which it moves") == sweeps.ANOTHER_HOUR


def test_what_a_mark_costs_is_what_the_page_says() -> None:
    assert formula("mark a queue that is seen to wait, once between two sweeps") == MARK
    assert formula("and for each mark of a queue that waits no more") == MARK_SWEPT


def test_what_the_page_says_of_itself_and_the_classic_algorithm_is_what_the_formula_gives() -> None:
    in_order, shuffled, batch = (put(Load(MANY, **options)) for options in ({}, {"shuffled": 10}, {"batch": 100}))
    assert f"ours takes {shown(in_order)} and {shown(shuffled)}" in " ".join(TEXT.split())
    assert f"{batch.requests:.2f} requests, {batch.write_units:.2f} write units, {batch.read_units:.2f} read" in TEXT


def test_an_idle_stack_costs_what_the_page_says() -> None:
    told = Line().json("cost", "--messages", "0")
    assert f"come to {told['usd']['a_month']:.2f} USD a month" in words_of(TEXT)


def test_the_table_of_prices_is_that_of_the_code() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| ([\d.]+) \|", TEXT, re.MULTILINE)
    assert [(name, float(usd)) for name, usd in rows] == [(name, price.usd) for name, price in PRICES.items()]


def test_the_commands_for_other_prices_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (stored,) = re.findall(r"^\$ echo '(.+)' > prices\.json$", TEXT, re.MULTILINE)
    Path("prices.json").write_text(stored)
    commands = re.findall(r"^\$ \.venv/bin/stream-sort (cost .+--price.+)$", TEXT, re.MULTILINE)
    outcomes = {Line().run(*shlex.split(command)).stdout for command in commands}
    assert (len(commands), len(outcomes)) == (2, 1)


def formula(name: str, **values: float) -> Work:
    """A row of the table of formulas, with these values."""
    (row,) = re.findall(rf"^\| {re.escape(name)} \| `([^`]+)` \| `([^`]+)` \| `([^`]+)` \|$", TEXT, re.MULTILINE)
    return Work(*(float(eval(cell, {"ceil": ceil}, values)) for cell in row))


def numbers(work: Work) -> tuple[float, float, float]:
    return work.requests, work.write_units, work.read_units


def approx(work: Work) -> Any:
    return pytest.approx(numbers(work), rel=1e-4)


def shown(work: Work) -> str:
    return f"{work.requests:.2f}, {work.write_units:.2f}, {work.read_units:.2f}"


def words_of(text: str) -> str:
    return " ".join(text.split())
