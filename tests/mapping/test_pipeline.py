"""The order of work in the threads that map chunks."""

import threading
from types import SimpleNamespace

import pytest

from bwarp.mapping import pipeline
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.pipeline import finish_chunks

#: A chunk of this many templates suffices for estimating the insert size.
TEMPLATES = pipeline.FIRST_PAIRS


@pytest.fixture
def unscored(monkeypatch):
    """Return a function that yields numbered chunks, each scored by a function of its number."""
    monkeypatch.setattr(pipeline, "estimate_insert_size", lambda scored, *_: 250)
    monkeypatch.setattr(pipeline, "_add_mates", lambda genome, scored, *_: scored)
    monkeypatch.setattr(
        pipeline, "finish_chunk", lambda index, genome, scored, insert, _: (scored, insert)
    )

    def chunks(n: int, score):
        for number in range(n):
            first = number * TEMPLATES
            chunk = SimpleNamespace(ends=2, n_templates=TEMPLATES, first_template=first)
            yield chunk, lambda number=number: score(number)

    return chunks


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_come_in_the_order_of_chunks(unscored, threads):
    chunks = unscored(9, lambda number: number)
    made = finish_chunks(None, None, chunks, MappingParameters(), threads, lambda done: [*done])
    assert list(made) == [[number, 250] for number in range(9)]


def test_chunks_not_needed_for_the_insert_size_do_not_block(unscored):
    first_is_done = threading.Event()
    waited = []

    def score(number: int) -> int:
        if number == 1:
            waited.append(first_is_done.wait(20))
        return number

    def then(done):
        first_is_done.set()
        return done[0]

    assert list(finish_chunks(None, None, unscored(4, score), MappingParameters(), 2, then)) == [
        0,
        1,
        2,
        3,
    ]
    assert waited == [True]
