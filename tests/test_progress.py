"""Words for counts, as lines on the screen have them."""

import pytest

from ifqa.progress import counted


@pytest.mark.parametrize(
    ("count", "told"),
    [(0, "0 pages"), (1, "1 page"), (1.2, "1 page"), (0.7, "1 page"), (2, "2 pages"), (1234, "1,234 pages")],
)
def test_a_count_has_the_singular_where_it_is_written_as_one(count, told):
    assert counted(count, "page") == told


def test_a_plural_may_be_any_word():
    assert [counted(n, "process", "processes") for n in (1, 2)] == ["1 process", "2 processes"]
