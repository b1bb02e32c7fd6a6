"""Parts of an index on a GPU fit there, together with a program's other data."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from bwarp.errors import GpuMemoryError
from bwarp.index import memory_plan
from bwarp.index.memory_plan import MemoryNeeds, MemoryPlan, longest_string, plan_memory

GB = 1 << 30

#: Sizes as for a human genome.
ROWS = 3_100_000_000
GENOME = ROWS // 2


def index_of(n_rows: int, sa_rate: int = 4):
    blocks = SimpleNamespace(nbytes=n_rows // 2)
    return SimpleNamespace(forward=SimpleNamespace(n_rows=n_rows, blocks=blocks), sa_rate=sa_rate)


def needs(with_reverse=False, with_suffixes="yes", beside=GENOME, spare=0):
    return MemoryNeeds(
        with_reverse, with_suffixes, bytes_an_element=8192, fewest=1 << 13, enough=1 << 15,
        most=1 << 18, beside=beside, spare=spare,
    )  # fmt: skip


@pytest.mark.parametrize("sa_rate", [1, 3, 4, 64])
@pytest.mark.parametrize("free", [8, 10, 12, 16, 20, 24, 32, 40, 80, 140])
def test_plans_fit_with_room_for_the_driver(free, sa_rate):
    plan = plan_memory(index_of(ROWS, sa_rate), needs(), free * GB)
    parts = ROWS // 2 + 16 * 4**plan.string_length + GENOME
    suffixes = 4 * -(-ROWS // plan.suffix_rate)
    text = ROWS // 4 if plan.suffix_rate == 1 else 0
    assert plan.index_bytes == parts + suffixes + text
    assert plan.work_bytes == 8192 * plan.elements
    assert plan.index_bytes + plan.work_bytes <= free * GB - memory_plan.DRIVER_BYTES
    assert 1 << 13 <= plan.elements <= 1 << 18
    assert plan.suffix_rate == 1 or plan.suffix_rate % sa_rate == 0


def needs_of(program: str) -> MemoryNeeds:
    """Return the memory requests of programs, as for a human genome."""
    pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")
    from bwarp.allmap import find_cuda as loci
    from bwarp.index.device_index_cuda import search_needs
    from bwarp.mapping import seeding_rounds_cuda as mapping

    if program == "map":
        return MemoryNeeds(
            False, "yes", mapping.BYTES_A_READ, mapping.FEWEST_READS, mapping.ENOUGH_READS,
            mapping.MOST_READS, GENOME, mapping.SPARE_BYTES,
        )  # fmt: skip
    if program == "allmap":
        return MemoryNeeds(
            False, "yes", loci.BYTES_A_READ, loci.FEWEST_READS, loci.ENOUGH_READS,
            loci.READS_A_CHUNK, GENOME + 16 * 4**13,
        )  # fmt: skip
    if program == "seeds":
        return search_needs(True, "if they fit")
    return search_needs(True, "yes", beside=ROWS // 4)


@pytest.mark.parametrize("program", ["map", "allmap", "seeds", "mems"])
@pytest.mark.parametrize("free", [8, 12, 16, 24, 40, 48, 80, 141])
def test_every_program_runs_on_every_gpu(program, free):
    wanted = needs_of(program)
    plan = plan_memory(index_of(ROWS), wanted, free * GB)
    usable = free * GB * (1 - memory_plan.DRIVER_SHARE) - memory_plan.DRIVER_BYTES
    assert plan.index_bytes + plan.work_bytes <= usable
    assert plan.work_bytes == wanted.bytes_an_element * plan.elements
    # Batches that keep a GPU busy; with 8 GB, batches are a fraction of these.
    assert plan.elements >= (wanted.enough if free > 8 else wanted.fewest)


def test_larger_gpus_get_larger_parts():
    rates = [plan_memory(index_of(ROWS), needs(), free * GB).suffix_rate for free in (8, 12, 24)]
    assert rates == [4, 4, 1]
    lengths = [
        plan_memory(index_of(ROWS), needs(), free * GB).string_length for free in (24, 40, 140)
    ]
    assert lengths[0] < lengths[-1] == 15
    assert plan_memory(index_of(ROWS), needs(), 6 * GB).suffix_rate > 4


def test_arrays_made_from_the_sampled_suffix_array_must_fit():
    """It keeps 13.2 more bytes per base; temporarily there are 16."""
    index = index_of(ROWS, sa_rate=2)
    kept = ROWS // 2 + 4 * ROWS + ROWS // 4 + 16 * 4**12
    least = kept + 8192 * (1 << 15) + memory_plan.DRIVER_BYTES
    free = int(least / (1 - memory_plan.DRIVER_SHARE)) + GB // 4
    assert plan_memory(index_of(ROWS, 1), needs(beside=0), free).suffix_rate == 1
    assert plan_memory(index, needs(beside=0), free).suffix_rate == 2


def test_batches_get_smaller_before_the_program_gives_up():
    with_more = plan_memory(index_of(ROWS), needs(), 8 * GB)
    with_less = plan_memory(index_of(ROWS, 32), needs(), int(4 * GB))
    assert with_less.elements < needs().enough <= with_more.elements


def test_memory_is_saved_if_enough_elements_remain():
    index, wanted = index_of(ROWS), needs(spare=8 * GB)
    for free in (16, 24, 40, 80):
        plan = plan_memory(index, wanted, free * GB)
        assert plan.free_bytes - plan.index_bytes - plan.work_bytes >= 8 * GB
        assert plan.elements >= wanted.enough
    assert plan_memory(index, wanted, 24 * GB).suffix_rate == 4
    # If it does not fit, the plan is the same as without it.
    for free in (6, 8, 12):
        assert plan_memory(index, wanted, free * GB) == plan_memory(index, needs(), free * GB)


def test_batches_are_halved_one_step_at_a_time():
    """Parts reach their minimum size before batches do."""
    wanted = MemoryNeeds(
        False, "yes", bytes_an_element=8192, fewest=1 << 13, enough=1 << 18, most=1 << 20,
        beside=GENOME,
    )  # fmt: skip
    halvings = set()
    for free in np.arange(4, 10, 0.1) * GB:
        plan = plan_memory(index_of(ROWS), wanted, int(free))
        halvings.add(max(0, math.ceil(math.log2(wanted.enough / plan.elements))))
        if plan.elements < wanted.enough // 4:
            assert (plan.suffix_rate, plan.string_length) == (32, 12)
    assert {0, 1, 2} <= halvings


def test_a_gpu_that_is_too_small_is_told_what_is_needed():
    message = (
        r"requires at least (\d+\.\d) GB of GPU memory, but only 2\.1 GB are free: "
        "use --backend cpu"
    )
    with pytest.raises(GpuMemoryError, match=message) as caught:
        plan_memory(index_of(ROWS), needs(), 2 * GB)
    needed = float(caught.value.reason.split("at least ")[1].split(" GB")[0]) * 1e9
    assert plan_memory(index_of(ROWS), needs(), int(needed + 5e7)).suffix_rate == 32
    with pytest.raises(GpuMemoryError):
        plan_memory(index_of(ROWS), needs(), int(needed - 1e8))


def test_without_a_suffix_array_where_rows_are_located_on_the_host():
    none = plan_memory(index_of(ROWS), needs(with_suffixes="no"), 140 * GB)
    assert none.suffix_rate == 0
    assert plan_memory(index_of(ROWS), needs(with_suffixes="if they fit"), 24 * GB).suffix_rate == 1
    little = needs(with_reverse=True, with_suffixes="if they fit")
    assert plan_memory(index_of(ROWS), little, int(5.3 * GB)).suffix_rate == 0


def test_less_memory_is_needed_without_the_reverse():
    both, alone = (
        plan_memory(index_of(ROWS), needs(with_reverse=with_reverse), 140 * GB)
        for with_reverse in (True, False)
    )
    assert both.string_length == alone.string_length
    assert both.index_bytes - alone.index_bytes == ROWS // 2
    needed = []
    for with_reverse in (True, False):
        with pytest.raises(GpuMemoryError) as caught:
            plan_memory(index_of(ROWS), needs(with_reverse=with_reverse), 2 * GB)
        needed.append(float(caught.value.reason.split("at least ")[1].split(" GB")[0]))
    share = 1 - memory_plan.DRIVER_SHARE
    assert needed[0] - needed[1] == pytest.approx(ROWS / 2e9 / share, abs=0.11)


def test_the_strings_of_the_table_nearly_all_occur():
    assert longest_string(ROWS) == 15
    assert longest_string(100) == memory_plan.SHORTEST_STRING


def test_a_plan_reports_its_choices():
    assert str(MemoryPlan(8, 12, 1000, 8_000_000_000, 500_000_000, 10_000_000_000)) == (
        "GPU memory: 8.00 GB for the index (every 8th suffix, a table of 12-mers) and 0.50 GB of "
        "work space; 10.00 GB are free"
    )
