"""The order of work in the threads that find and finish chunks."""

import threading
from types import SimpleNamespace

import pytest

from bwarp.mapping.first_pairs import FIRST_PAIRS, find_and_finish


def chunks(n: int):
    """Numbered chunks, of which the first one is all that the insert size is estimated from."""
    for number in range(n):
        first = number * FIRST_PAIRS
        yield SimpleNamespace(number=number, ends=2, n_templates=FIRST_PAIRS, first_template=first)


def find(chunk) -> int:
    return chunk.number


def finish(found, insert) -> list:
    return [found, insert]


def estimate(first) -> int:
    assert list(first) == [0]
    return 250


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(
    ("insert", "estimated", "known"),
    [(None, estimate, 250), (99, estimate, 99), (None, None, None)],
)
def test_what_is_made_of_chunks_comes_in_their_order(threads, insert, estimated, known):
    made = find_and_finish(chunks(9), find, finish, threads, insert, estimated)
    assert list(made) == [[number, known] for number in range(9)]


def test_a_chunk_goes_on_while_others_are_searched_that_are_not_needed_for_the_insert_size():
    first_is_done = threading.Event()
    waited = []

    def find_slowly(chunk) -> int:
        if chunk.number == 1:
            waited.append(first_is_done.wait(20))
        return chunk.number

    def finish_first(found, _insert) -> int:
        first_is_done.set()
        return found

    made = find_and_finish(chunks(4), find_slowly, finish_first, 2, None, estimate)
    assert list(made) == [0, 1, 2, 3]
    assert waited == [True]
