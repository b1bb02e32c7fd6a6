"""The arrays for building an index fit on GPUs of any size."""

import pytest

from bwarp.errors import GpuMemoryError
from bwarp.index.build import BUCKET_SYMBOLS, MOST_PARTS, suffixes_at_once
from bwarp.index.memory_plan import DRIVER_BYTES

GB = 1 << 30

#: Lengths of a human genome, and of the longest text of an index.
GENOMES = (3_100_000_000, 4_294_967_294)


@pytest.mark.parametrize("n", GENOMES)
@pytest.mark.parametrize("sa_rate", [0, 1, 4, 32])
@pytest.mark.parametrize("free", [8, 12, 16, 24, 40, 48, 80, 141])
def test_plans_fit(n, sa_rate, free):
    rows = suffixes_at_once(n, sa_rate, 13, free * GB)
    assert n / MOST_PARTS <= rows <= n
    keys, positions, rows_of_groups, bits = 2 * 8, 3 * 4, 2 * 4, 2 / 8
    kept = 4 / sa_rate if sa_rate else 0
    part = rows * (keys + positions + rows_of_groups + bits + kept)
    assert n + 4 * 5**BUCKET_SYMBOLS + part <= free * GB - DRIVER_BYTES - free * GB / 32
    # Before that: three counts of each k-mer, its first row, and its number of rows.
    assert n + 4**13 * (3 * 4 + 2 * 4) <= free * GB - DRIVER_BYTES


def test_larger_gpus_take_fewer_parts():
    parts = [
        -(-GENOMES[0] // suffixes_at_once(GENOMES[0], 4, 13, free * GB))
        for free in (8, 12, 16, 24, 40, 48, 80, 141)
    ]
    assert parts == sorted(parts, reverse=True)
    assert parts[0] < MOST_PARTS
    assert parts[3] <= 8
    assert parts[-1] == 1


@pytest.mark.parametrize(("sa_rate", "prefix_length"), [(4, 0), (0, 0), (4, 14)])
def test_a_gpu_that_is_too_small_is_told_what_is_needed(sa_rate, prefix_length):
    message = (
        r"indexing 3,100,000,000 bases requires at least \d\.\d GB of GPU memory, "
        r"but only 3\.0 GB are free"
    )
    with pytest.raises(GpuMemoryError, match=message) as caught:
        suffixes_at_once(GENOMES[0], sa_rate, prefix_length, 3 * 10**9)
    needed = float(caught.value.reason.split("at least ")[1].split(" GB")[0]) * 1e9
    assert suffixes_at_once(GENOMES[0], sa_rate, prefix_length, int(needed + 6e7))
    with pytest.raises(GpuMemoryError):
        suffixes_at_once(GENOMES[0], sa_rate, prefix_length, int(needed - 1e8))


@pytest.mark.parametrize("n", [2, 63, 1000])
def test_a_small_text_is_one_part(n):
    assert suffixes_at_once(n, 4, 4, GB) == n
