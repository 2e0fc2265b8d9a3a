"""`stream-sort cost`: what it tells, and what it refuses. That its figures are right, benchmarks and docs tests say."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from stream_sort.cli.cost import amount_of
from stream_sort.cli.lazy_group import load
from stream_sort.insight.costing.prices import PRICES
from tests.functional.command_line import Line, examples_of

if TYPE_CHECKING:
    from pathlib import Path

STEPS = ["enqueue", "advance", "process", "sweep", "in all"]


@pytest.mark.parametrize(
    ("text", "amount"),
    [("1", 1), ("250000", 250_000), ("1,000,000", 1e6), ("1.5k", 1_500), ("10M", 1e7), ("2e6", 2e6), ("3 G", 3e9)],
)
def test_a_number_of_messages_is_read_as_people_write_it(text: str, amount: float) -> None:
    assert amount_of(text) == amount


def test_the_example_of_the_help_runs() -> None:
    (example,) = examples_of(load("cost").help)
    shown = Line().run(*example.split()[1:]).stdout
    assert all(name in shown for name in (*STEPS, *PRICES))
    assert "USD a month" in shown


def test_the_json_holds_every_step_and_every_price_and_they_add_up() -> None:
    told = Line().json("cost", "--messages", "10M")
    assert list(told["a_month"]) == list(told["a_message"]) == STEPS
    assert [line["name"] for line in told["bill"]] == list(PRICES)
    for name in ("requests", "write_units", "read_units"):
        *parts, whole = (work[name] for work in told["a_month"].values())
        assert sum(parts) == pytest.approx(whole)
        assert told["a_message"]["in all"][name] == pytest.approx(whole / 10_000_000)
    assert sum(line["usd"] for line in told["bill"]) == pytest.approx(told["usd"]["a_month"])
    assert told["usd"]["a_million_messages"] == pytest.approx(told["usd"]["a_month"] / 10)


def test_an_idle_stack_costs_what_its_sweeps_and_polls_cost() -> None:
    told = Line().json("cost", "--messages", "0")
    assert (told["a_message"], told["usd"]["a_million_messages"]) == (None, None)
    assert {name for name, work in told["a_month"].items() if work["requests"]} == {"sweep", "in all"}
    shown = Line().run("cost", "--messages", "0").stdout
    assert f"{told['usd']['a_month']:.2f} USD a month\n" in shown


def test_a_price_that_is_given_goes_before_that_of_the_file_and_that_before_ours(tmp_path: Path) -> None:
    file = tmp_path / "prices.json"
    file.write_text(json.dumps({"write-units": 100, "read-units": 10}))
    told = Line().json("cost", "--messages", "1M", "--prices", str(file), "--price", "write-units=1000")
    usd = {line["name"]: line["usd"] / line["quantity"] * 1_000_000 for line in told["bill"] if line["quantity"]}
    assert (usd["write-units"], usd["read-units"]) == pytest.approx((1000, 10))
    assert usd["lambda-requests"] == pytest.approx(PRICES["lambda-requests"].usd)


def test_what_is_left_out_costs_nothing() -> None:
    words = ("--source", "none", "--sink", "none", "--keep-days", "0", "--consumers", "0")
    told = Line().json("cost", "--messages", "1M", *words)
    free = {line["name"] for line in told["bill"] if not line["quantity"]}
    assert free == {"storage", "backup", "stream-reads", "sqs-requests", "sqs-fifo-requests"}
    assert told["a_month"]["process"] == {"requests": 0, "write_units": 0, "read_units": 0}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--messages", "ten"], "'ten' is not a number of messages; give one such as 250000, 1.5k, 10M or 2e6"),
        (["--messages", "-5"], "'-5' is not a number of messages; give one such as 250000, 1.5k, 10M or 2e6"),
        (["--messages", "nan"], "'nan' is not a number of messages; give one such as 250000, 1.5k, 10M or 2e6"),
        (["--messages", "0.5"], "'0.5' messages a month: it must be 0, or from 1 to 1e+15"),
        (["--messages", "9e99"], "'9e99' messages a month: it must be 0, or from 1 to 1e+15"),
        (["--messages", "1M", "--batch", "0"], "batch is 0; it must be at least 1"),
        (["--messages", "1M", "--batch-size", "0"], "batch_size is 0; it must be at least 1"),
        (["--messages", "1M", "--consumers", "-1"], "consumers is -1; it must be at least 0"),
        (["--messages", "1M", "--shuffled", "101"], "shuffled is 101; it must be at most 100"),
        (["--messages", "1M", "--size", "500000"], "size is 500000; it must be at most 409,088"),
        (
            ["--messages", "1M", "--batch", "10", "--queues-a-batch", "11"],
            "a batch of 10 messages cannot touch 11 queues; there are 100, and each takes a message of the batch",
        ),
        (["--messages", "1M", "--keep-days", "nan"], "keep_days is nan; it must be from 0 to 36,500"),
        (
            ["--messages", "1M", "--price", "write-units"],
            "'write-units' is not a price; give one as NAME=USD, such as write-units=0.7",
        ),
        (["--messages", "1M", "--price", "gold=1"], f"there is no price 'gold'; there are {', '.join(PRICES)}"),
        (
            ["--messages", "1M", "--price", "write-units=-1"],
            "the price of write-units is '-1'; it must be dollars, from 0 to 1,000,000",
        ),
        (
            ["--messages", "1M", "--price", "write-units=inf"],
            "the price of write-units is 'inf'; it must be dollars, from 0 to 1,000,000",
        ),
        ([], "Missing option '--messages'; see stream-sort cost --help"),
    ],
)
def test_bad_input_is_one_line(words: list[str], said: str) -> None:
    assert Line().error("cost", *words, code=2) == said


@pytest.mark.parametrize("name", ["batch", "size", "queues", "consumers", "batch-size", "sweep-minutes", "memory"])
def test_a_number_that_no_computer_can_reckon_with_is_one_line(name: str) -> None:
    assert "must be" in Line().error("cost", "--messages", "1M", f"--{name}", "9" * 400, code=2)


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"write-units": true}', '{"write-units": [1]}', '{"\\u001b[2J": 1}'])
def test_a_file_that_holds_no_prices_is_one_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "prices.json"
    file.write_text(text)
    assert Line().error("cost", "--messages", "1M", "--prices", str(file), code=2)
    assert "No such file" in Line().error("cost", "--messages", "1M", "--prices", str(tmp_path / "none"), code=2)


def test_it_loads_nothing_of_aws() -> None:
    code = "import sys; from stream_sort.cli import cost; print('boto3' in sys.modules, 'botocore' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
