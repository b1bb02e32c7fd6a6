"""Memory available to a process, from files as in Linux."""

import pytest

from bwarp.runtime.host_memory import available_bytes, parse_size

GB = 1 << 30


def write(root, files: dict[str, str]):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


MEMINFO = {"proc/meminfo": f"MemTotal: {64 * GB // 1024} kB\nMemAvailable: {40 * GB // 1024} kB\n"}


def test_free_memory_of_the_machine(tmp_path):
    assert available_bytes(write(tmp_path, MEMINFO)) == 40 * GB


def test_a_job_is_limited_by_its_control_groups(tmp_path):
    group = "sys/fs/cgroup/slurm/job7/step"
    files = MEMINFO | {
        "proc/self/cgroup": "0::/slurm/job7/step\n",
        f"{group}/memory.max": "max\n",
        f"{group}/memory.current": f"{GB}\n",
        "sys/fs/cgroup/slurm/job7/memory.max": f"{16 * GB}\n",
        "sys/fs/cgroup/slurm/job7/memory.current": f"{4 * GB}\n",
        "sys/fs/cgroup/slurm/job7/memory.stat": f"anon 1\ninactive_file {3 * GB}\n",
    }
    assert available_bytes(write(tmp_path, files)) == 15 * GB


def test_control_groups_of_version_1(tmp_path):
    group = "sys/fs/cgroup/memory/docker/a1"
    files = MEMINFO | {
        "proc/self/cgroup": "5:cpu,cpuacct:/docker/a1\n4:memory:/docker/a1\n",
        f"{group}/memory.limit_in_bytes": f"{8 * GB}\n",
        f"{group}/memory.usage_in_bytes": f"{2 * GB}\n",
    }
    assert available_bytes(write(tmp_path, files)) == 6 * GB


def test_a_group_that_is_used_up_leaves_nothing(tmp_path):
    files = MEMINFO | {
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/memory.max": "100\n",
        "sys/fs/cgroup/memory.current": "200\n",
    }
    assert available_bytes(write(tmp_path, files)) == 0


@pytest.mark.parametrize(
    ("text", "size"),
    [("16G", 16 * GB), ("1.5g", 3 * GB // 2), ("800MiB", 800 << 20), ("2TB", 2 << 40)],
)
def test_sizes(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["16", "", "G", "-1G", "1e3G", "much"])
def test_not_a_size(text):
    with pytest.raises(ValueError, match="is not a size such as 16G or 800M"):
        parse_size(text)
