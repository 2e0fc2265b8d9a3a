"""Tables of any width: texts are cut, figures never, and no line is longer than it may be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_sort.formats.columns import Column, cut_end, cut_middle, fit, text_width

TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=60)


@pytest.mark.parametrize(
    ("text", "width", "cut"),
    [
        ("short", 5, "short"),
        ("longer", 5, "long…"),
        ("billing at 217", 14, "billing at 217"),
        ("billing at 217", 13, "billing at…"),
        ("3-5, 9, 1024", 11, "3-5, 9,…"),
        ("5 of 1,234,567", 10, "5 of…"),
        ("日本語の名前", 7, "日本語…"),
        ("12345", 3, "…"),
    ],
)
def test_a_number_that_does_not_fit_is_left_out_whole(text: str, width: int, cut: str) -> None:
    assert cut_end(text, width) == cut


def test_names_keep_both_ends() -> None:
    assert cut_middle("customer-000001/europe", 13) == "custom…europe"
    assert cut_middle("ada", 3) == "ada"


@given(TEXTS, st.integers(1, 40))
def test_nothing_is_wider_than_it_may_be(text: str, width: int) -> None:
    for cut in (cut_end(text, width), cut_middle(text, width)):
        assert text_width(cut) <= width
        assert (cut == text) == (text_width(text) <= width)


FIGURES = st.sampled_from(["", "7", "1,234,567", "9,223,372,036,854,775,807", "13 s?", "3.5 h", "2026-11-18 04:58:51Z"])
COLUMNS = st.lists(
    st.tuples(TEXTS, st.lists(FIGURES, min_size=3, max_size=3) | st.lists(TEXTS, min_size=3, max_size=3)), min_size=1
).map(lambda found: [Column(title, cells, is_name=at == 0) for at, (title, cells) in enumerate(found)])


@given(COLUMNS, st.integers(30, 250))
def test_a_table_fits_and_cuts_no_figure(columns: list[Column], width: int) -> None:
    widths = fit(columns, width, 3)
    shown = [(column, most) for column, most in zip(columns, widths, strict=True) if most]
    assert widths[0] or not columns[0].natural
    assert sum(most for _, most in shown) + 3 * (len(shown) - 1) <= width
    for column, most in shown:
        if column.is_figures:
            assert list(column.cut(most).cells) == list(column.cells)


def test_times_are_left_out_before_counts_and_texts_last() -> None:
    columns = [
        Column("queue", ["q" * 50], is_name=True),
        Column("seq", ["217"]),
        Column("since", ["2026-11-18 04:58:51Z"]),
        Column("error", ["e" * 200]),
    ]
    assert [bool(width) for width in fit(columns, 60, 3)] == [True, True, True, True]
    assert [bool(width) for width in fit(columns, 45, 3)] == [True, True, False, True]
    assert [bool(width) for width in fit(columns, 24, 3)] == [True, False, False, True]
    assert [bool(width) for width in fit(columns, 15, 3)] == [True, False, False, False]
    assert fit(columns, 500, 3) == [50, 3, 20, 200]
