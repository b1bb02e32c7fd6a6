"""Compute exact local scores of queries against a database on a GPU.

The database is copied to the GPU once, in parts if it is larger than GPU memory. Queries of similar
length are processed in pairs, which takes less work than one by one (profile_kernel_cuda). Targets
with scores near the 16-bit limit, and schemes that do not fit a byte, are computed in 32 bits
(int32_kernel_cuda). Several GPUs divide the database by residues, and work on the same query at the
same time.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from bwarp.alignment.device_batch_cuda import (
    BLOCK,
    DeviceBatch,
    DeviceSequences,
    blocks,
    find_full,
    free_bytes,
    pair_costs,
    with_host_lengths,
)
from bwarp.alignment.pair_tables_cuda import EndArrays
from bwarp.alignment.scoring import LOCAL, Scoring
from bwarp.database_search import profile_kernel_cuda
from bwarp.database_search.database import Database, check_search, sorted_database
from bwarp.database_search.profile_kernel_cuda import (
    ALPHABET,
    GROUP,
    GROUPS,
    MOST_ROWS,
    Tile,
    query_profile,
    spread_targets,
    strip_kernel,
)
from bwarp.gpu.cuda import cuda
from bwarp.gpu.device_arrays import columns, zeros
from bwarp.gpu.transfers import to_gpu, to_host
from bwarp.runtime.threads import bounded_ranges

#: The maximum of a 16-bit lane.
LIMIT = 32_767
#: The tiles of kernels in use, by targets in the lanes; among equal ones, the first is best.
TILES = {
    targets: tuple(
        Tile(rows, group, targets) for group in (8, 4) for rows in range(16, MOST_ROWS + 1, 4)
    )
    for targets in (1, 2)
}
#: Minimum residues of a strip if there are several: shorter strips wait for memory.
LEAST_OF_SEVERAL = 128
#: Threads that keep a large GPU busy.
MANY_THREADS = 1 << 17
#: The cost of a step besides the rows of a thread, in rows.
STEP_COST = 4
#: Cost per strip and column, in rows: the last row of a strip passes through memory.
STRIP_COST = 16
#: The cost of a query searched alone, relative to two of its length searched together.
ALONE = 0.56
#: Queries among which pairs of similar length are formed, and that a part of the database is
#: compared with before the next part is copied to the GPU; fewer if their scores take this many
#: bytes.
QUERY_GROUP = 64
GROUP_BYTES = 4 << 30
#: GPU memory per residue, for its code and edge, with some reserve.
BYTES_A_RESIDUE = 10
#: Residues of a part are counted in 32 bits.
MOST_RESIDUES = 2**32 - 1


@dataclass(frozen=True)
class _Part:
    """A part of the database on the GPU."""

    targets: DeviceSequences
    offsets: object
    edge: object


def search_scores(
    queries: Sequence[np.ndarray],
    database: Database,
    scoring: Scoring,
    threads: int = 1,
    gpus: int = 1,
) -> Iterator[np.ndarray]:
    """Do what `search_cpu.search_scores` does, on a GPU.

    Parameters
    ----------
    threads : int
        Threads that copy the database to the GPU.
    gpus : int
        The number of GPUs visible to CUDA that share the database.
    """
    return DatabaseOnGpus(database, threads, gpus).search_scores(queries, scoring)


class DatabaseOnGpus:
    """A database for several searches, which stays on the GPUs after the first if it fits.

    Parameters
    ----------
    threads, gpus : int
        As for `search_scores`.
    """

    def __init__(self, database: Database, threads: int = 1, gpus: int = 1):
        self._database = database
        shares = _shares(database.offsets, min(gpus, len(cuda.gpus)) if gpus > 1 else 1)
        self._shares = [_Share(database, threads, *share) for share in shares]

    def search_scores(
        self, queries: Sequence[np.ndarray], scoring: Scoring
    ) -> Iterator[np.ndarray]:
        """Yield the scores of each query against all sequences, int32."""
        check_search(queries, self._database, scoring)
        if len(self._shares) == 1:
            yield from self._shares[0].scores(queries, scoring)
        elif self._shares:
            yield from self._scores_of_gpus(queries, scoring)

    def _scores_of_gpus(self, queries, scoring):
        """Run each GPU on its share in a separate thread, as CUDA state is per thread."""
        pools = [ThreadPoolExecutor(1) for _ in self._shares]
        searches = [
            _scores_of_gpu(gpu, share, queries, scoring) for gpu, share in enumerate(self._shares)
        ]
        try:
            for _ in queries:
                found = [
                    pool.submit(next, search) for pool, search in zip(pools, searches, strict=True)
                ]
                yield np.concatenate([scores.result() for scores in found])
        finally:
            for pool, search in zip(pools, searches, strict=True):
                pool.submit(search.close).result()
                pool.shutdown()


def _scores_of_gpu(gpu, share, queries, scoring):
    with cuda.gpus[gpu]:
        yield from share.scores(queries, scoring)


def _shares(offsets: np.ndarray, gpus: int) -> list[tuple[int, int]]:
    """Return non-empty ranges of sequences with about equal residues."""
    count = offsets.size - 1
    residues = offsets[-1] * np.arange(1, gpus) // gpus
    edges = np.unique([0, *np.searchsorted(offsets, residues), count])
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


class _Share:
    """The sequences `first` to `last` of a database, for one GPU."""

    def __init__(self, database: Database, threads: int, first: int, last: int):
        self._database, self._threads = database, threads
        self._first, self._last = first, last
        self._parts: list[tuple[int, int]] = []
        self._resident: _Part | None = None

    def scores(self, queries, scoring):
        """Yield scores of each query, on the current GPU."""
        first, last, threads = self._first, self._last, self._threads
        self._divide()
        together = max(2, min(QUERY_GROUP, GROUP_BYTES // (4 * (last - first))))
        for begin in range(0, len(queries), together):
            group = queries[begin : begin + together]
            if self._resident is not None:
                yield from _scores_in_turn(group, self._resident, scoring, threads)
                continue
            scores = np.zeros((len(group), last - first), np.int32)
            for part_first, part_last in self._parts:
                part = _load_part(self._database, threads, part_first, part_last)
                found = _scores_in_turn(group, part, scoring, threads)
                for row, part_scores in zip(scores, found, strict=True):
                    row[part_first - first : part_last - first] = part_scores
                del part, found
            yield from scores

    def _divide(self) -> None:
        """Divide the share into parts that fit in the memory of the GPU; load it if there is one.

        Does nothing in later searches.
        """
        if self._parts:
            return
        offsets = self._database.offsets
        starts = offsets + GROUP * np.arange(offsets.size)
        most = min(int(0.8 * free_bytes()) // BYTES_A_RESIDUE, MOST_RESIDUES)
        ranges = bounded_ranges(starts[self._first : self._last + 1], most)
        self._parts = [(self._first + start, self._first + stop) for start, stop in ranges]
        if len(self._parts) == 1:
            self._resident = _load_part(self._database, self._threads, *self._parts[0])


def _load_part(database: Database, threads: int, first: int, last: int) -> _Part:
    offsets = database.offsets[first : last + 1].astype(np.int64)
    (codes,) = to_gpu([np.ascontiguousarray(database.codes[offsets[0] : offsets[-1]])], threads)
    offsets = offsets - offsets[0]
    lengths = np.diff(offsets).astype(np.int32)
    size = int(offsets[-1]) + GROUP * offsets.size
    spread = cuda.device_array(size, np.uint8)
    edge = cuda.device_array(size, np.int64)
    device_offsets = cuda.to_device(offsets)
    spread_targets[lengths.size, BLOCK](codes, device_offsets, spread, edge)
    starts = offsets[:-1] + GROUP * np.arange(1, offsets.size)
    targets = with_host_lengths(spread, cuda.to_device(starts), cuda.to_device(lengths), lengths)
    return _Part(targets, device_offsets, edge)


def query_batches(lengths: Sequence[int], count: int) -> list[tuple[int, ...]]:
    """Return which queries are searched in pairs and which alone, for the least work.

    Parameters
    ----------
    lengths : sequence of int
    count : int
        The number of targets.

    Returns
    -------
    batches : list of tuple of int
        Indices of one or two queries each; every query occurs once.
    """
    order = sorted(range(len(lengths)), key=lambda query: (lengths[query], query))
    # The least work for each number of shortest queries, and the batch that it ends with.
    work, ends = [0.0], [()]
    for done, query in enumerate(order):
        together = _work(best_tile(lengths[query], 1, count), lengths[query])
        work.append(work[done] + ALONE * together)
        ends.append((query,))
        if done and work[done - 1] + together < work[-1]:
            work[-1] = work[done - 1] + together
            ends[-1] = tuple(sorted((order[done - 1], query)))
    batches, done = [], len(order)
    while done:
        batches.append(ends[done])
        done -= len(ends[done])
    return batches


def _work(tile: Tile, query_length: int) -> int:
    """Return the work for a column of a target, in rows of a thread."""
    return tile.strips(query_length) * (tile.group * (tile.rows + STEP_COST) + STRIP_COST)


def best_tile(query_length: int, targets: int, count: int) -> Tile:
    """Return the tile that takes the least work for a query and a number of targets.

    Parameters
    ----------
    targets : int
        Targets in the lanes, 1 or 2.
    count : int
        Few targets are searched by large groups, to use as many threads as possible.
    """
    tiles = TILES[targets]
    if count // targets * min(GROUPS) < MANY_THREADS:
        tiles = [tile for tile in tiles if tile.group == GROUP]
    return min(
        (tile for tile in tiles if query_length <= tile.residues or _may_be_one_of_several(tile)),
        key=lambda tile: _work(tile, query_length),
    )


def _may_be_one_of_several(tile: Tile) -> bool:
    """Return whether the strips of a tile are long enough for queries of several strips."""
    return tile.residues >= LEAST_OF_SEVERAL


def load_kernels(queries: Sequence[np.ndarray], scoring: Scoring) -> None:
    """Load the kernels that search these queries in a large database, while it is read.

    They are compiled first if they have not been used with these gap costs.
    """
    if not queries or not _fits(scoring):
        return
    part = _load_part(sorted_database([np.zeros(1, np.uint8)], [""]), 1, 0, 1)
    loaded = set()
    queries = queries[:QUERY_GROUP]
    for batch in query_batches([query.size for query in queries], MANY_THREADS):
        prepared = _profile([queries[i] for i in batch], scoring, MANY_THREADS)
        if prepared[1] not in loaded:
            loaded.add(prepared[1])
            _start(prepared, part, scoring)


def _scores_in_turn(queries, part, scoring, threads):
    """Yield scores of each query in turn; the second query of a pair waits.

    While the GPU works on a batch, the host makes the profile of the next one and widens the scores
    of the previous one.
    """
    count = part.targets.count
    if not _fits(scoring):
        for query in queries:
            yield _scores_in_32_bits(query, part, scoring, np.arange(count))
        return
    batches = sorted(query_batches([query.size for query in queries], count))
    profiles = (_profile([queries[i] for i in batch], scoring, count) for batch in batches)
    best = _start(next(profiles), part, scoring)
    waiting, done = {}, 0
    for query in range(len(queries)):
        if query not in waiting:
            batch = batches[done]
            done += 1
            profile = next(profiles, None)
            (lanes,) = to_host([best], threads)
            if profile:
                best = _start(profile, part, scoring)
            # Two 16-bit lanes per word, the low one first.
            found = lanes.view("<i2").reshape(-1, len(batch))[:count].T
            for i, scores in zip(batch, found, strict=True):
                waiting[i] = _exact(queries[i], scores, part, scoring)
        yield waiting.pop(query)


def _fits(scoring: Scoring) -> bool:
    """Return whether the scores of this scheme can be packed, added and compared on the GPU."""
    first = scoring.gap_open + scoring.gap_extend
    return (
        cuda.get_current_device().compute_capability >= (9, 0)
        and len(scoring.matrix) < ALPHABET
        and first >= -int(scoring.matrix.min())
        and int(scoring.matrix.max()) + first <= 127
    )


def _profile(queries, scoring, count):
    """Return the profile of one or two queries against `count` targets, and its tile."""
    tile = best_tile(max(query.size for query in queries), 2 // len(queries), count)
    first = scoring.gap_open + scoring.gap_extend
    return query_profile(queries, scoring.matrix, first, tile), tile


def _start(prepared, part: _Part, scoring: Scoring):
    """Launch the search of a profile; its results are complete when the GPU is done."""
    profile, tile = prepared
    strips = len(profile)
    profile = cuda.to_device(profile)
    words = -(-part.targets.count // tile.targets)
    best = cuda.device_array(words, np.int32)
    first = scoring.gap_open + scoring.gap_extend
    kernel = strip_kernel(tile, first, scoring.gap_extend)
    kernel = kernel[blocks(words, tile.group), profile_kernel_cuda.BLOCK]
    for strip in range(strips):
        kernel(
            profile[strip],
            part.targets.codes,
            part.offsets,
            np.int32(1),
            strip == 0,
            strip == strips - 1,
            part.edge,
            best,
        )
    return best


def _exact(query, lanes, part: _Part, scoring: Scoring) -> np.ndarray:
    """Return the scores in lanes, recomputing those that may have exceeded 16 bits."""
    most = LIMIT - int(scoring.matrix.max())
    scores = np.subtract(lanes, scoring.gap_open + scoring.gap_extend, dtype=np.int32)
    if lanes.max() > most:
        over = np.flatnonzero(lanes > most).astype(np.int32)
        scores[over] = _scores_in_32_bits(query, part, scoring, over)
    return scores


def _scores_in_32_bits(query, part, scoring, ids):
    targets = part.targets
    count = targets.count
    lengths = np.full(count, query.size, np.int32)
    starts = zeros(count, np.int64)
    queries = with_host_lengths(cuda.to_device(query), starts, cuda.to_device(lengths), lengths)
    outputs = columns(EndArrays, count)
    marks = np.zeros(count, np.int32)
    marks[ids] = 1
    batch = DeviceBatch(queries, targets)
    find_full(batch, pair_costs(scoring, LOCAL), outputs, cuda.to_device(marks), 1)
    return outputs.scores.copy_to_host()[ids]
