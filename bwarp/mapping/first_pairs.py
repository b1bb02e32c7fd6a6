"""Find and finish chunks of reads in order, with the insert size of the first pairs.

    first chunks    find -> insert size -> finish
    others          find ----------------> finish

The insert size may also be known before, or not be needed.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import TypeVar

from bwarp.mapping.insert_size import InsertSize
from bwarp.reads.read_chunks import ReadChunk
from bwarp.runtime.chunks import in_order

Found = TypeVar("Found")
Result = TypeVar("Result")

#: Number of first pairs of a run used for the estimate, independent of chunks.
FIRST_PAIRS = 1 << 15


def pairs_left(chunk: ReadChunk) -> int:
    """Return how many pairs, from the first of the chunk on, are used for the estimate."""
    return max(0, FIRST_PAIRS - chunk.first_template)


def first_chunks(chunks: Iterator[ReadChunk]) -> Iterator[ReadChunk]:
    """Yield the chunks of the first `FIRST_PAIRS` pairs, or one of single reads.

    Further chunks may be taken from `chunks` afterwards.
    """
    for chunk in chunks:
        yield chunk
        if chunk.ends == 1 or chunk.n_templates >= pairs_left(chunk):
            return


def find_and_finish(
    chunks: Iterator[ReadChunk],
    find: Callable[[ReadChunk], Found],
    finish: Callable[[Found, InsertSize | None], Result],
    threads: int,
    insert: InsertSize | None = None,
    estimate: Callable[[Sequence[Found]], InsertSize] | None = None,
) -> Iterator[Result]:
    """Yield ``finish(find(chunk), insert)`` for every chunk, in order; a thread takes one chunk.

    Parameters
    ----------
    insert : InsertSize, optional
        The insert size, if it is known.
    estimate : function, optional
        Returns the insert size from what was found for the first chunks, if it is not known; the
        other chunks wait for it.
    """
    chunks = iter(chunks)
    first, found = deque(), iter(())
    if insert is None and estimate is not None:
        waiting = list(first_chunks(chunks))
        # While the last of the first chunks are searched, other threads search further chunks,
        # which are finished as soon as the estimate is known.
        more = islice(chunks, max(0, threads - len(waiting)))
        found = in_order(find, chain(waiting, more), threads)
        first.extend(islice(found, len(waiting)))
        insert = estimate(first)
    # Do not keep found chunks longer than the others.
    found = chain((first.popleft() for _ in range(len(first))), found)
    begun = (partial(finish, one, insert) for one in found)
    others = (partial(lambda chunk: finish(find(chunk), insert), chunk) for chunk in chunks)
    yield from in_order(lambda work: work(), chain(begun, others), threads)
