from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_sort.errors import InvalidInput
from stream_sort.model.message import MAX_SEQ, MIN_SEQ
from stream_sort.replay.files.paths import MAX_SEGMENT, decode_queue, decode_seq, encode_queue, encode_seq

HOSTILE = [
    *("{x,y}", "a*b", "..", ".", "_x", ".x", "007", "🙂", "a/b", "a\\b", "A", "a", "con", "q-", "_41", " ", "x=1"),
    *("e\u0301", "\u00e9"),
]
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)
seqs = st.integers(MIN_SEQ - 1, MAX_SEQ)


@pytest.mark.parametrize("queue", HOSTILE)
def test_a_hostile_name_is_one_plain_segment_and_comes_back(queue: str) -> None:
    segment = encode_queue(queue)
    assert re.fullmatch(r"q-[a-z0-9_-]+", segment)
    assert decode_queue(segment) == queue


def test_no_two_hostile_names_share_a_segment_where_case_is_not_told_apart() -> None:
    assert len({encode_queue(queue).casefold() for queue in HOSTILE}) == len(HOSTILE)


@given(texts)
def test_any_name_comes_back_or_is_too_long_to(queue: str) -> None:
    segment = encode_queue(queue)
    assert len(segment) <= MAX_SEGMENT
    assert decode_queue(segment) == (queue if segment.startswith("q-") else None)


@given(texts, texts)
def test_two_names_have_two_segments(one: str, other: str) -> None:
    assert (encode_queue(one) == encode_queue(other)) is (one == other)


def test_names_of_1024_bytes_that_differ_at_the_end_have_two_segments() -> None:
    assert encode_queue("x" * 1023 + "a") != encode_queue("x" * 1023 + "b")


@pytest.mark.parametrize(
    "segment", ["", "x", "q-A", "q-_4", "q-_61", "q-_C3", "q-_c3", "long-12", "q-é", "q-" + "x" * 250]
)
def test_a_segment_that_is_nobodys_is_refused(segment: str) -> None:
    with pytest.raises(InvalidInput, match="no queue's path segment"):
        decode_queue(segment)


@given(seqs, seqs)
def test_seqs_sort_as_text_like_the_numbers_and_come_back(one: int, other: int) -> None:
    assert (encode_seq(one) < encode_seq(other)) is (one < other)
    assert decode_seq(encode_seq(one)) == one


@pytest.mark.parametrize("text", ["", "1", "abc", "+000000000000000001", "00000000000000000001"])
def test_text_that_is_no_seq_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="no seq as paths have it"):
        decode_seq(text)
