"""An index without the BWT of the reversed text, and the same index after adding it."""

import hashlib
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from bwarp.errors import InputError, UsageError
from bwarp.index.build import build_reverse
from bwarp.index.parameters import parse_size_table, part_sizes, size_table
from bwarp.index.store import added_to_index, load_index, require_reverse, save_index, write_reverse
from bwarp.index.verify import verify_index
from tests.helpers.oracles.index_oracle import HOSTILE, index_of

#: The checksum of index.json, which contains those of all files, as written before the reverse BWT
#: was optional.
OF_VERSION_1 = "fbfd78e9ca4789e4e078c4b54ee79bd85e9ed9c33cb081459cea85cbe38c067b"

WITHOUT = index_of(HOSTILE["with gaps"], 64, 3, 2, with_reverse=False)


@pytest.fixture
def saved(tmp_path) -> Path:
    save_index(WITHOUT, tmp_path / "index")
    return tmp_path / "index"


@pytest.fixture(scope="module")
def complete(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("complete") / "index"
    save_index(index_of(HOSTILE["with gaps"], 64, 3, 2), folder)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def add(folder: Path, threads: int = 1) -> None:
    stored = load_index(folder)
    with added_to_index(stored) as part:
        reverse = build_reverse(stored.reference, stored.occ_rate, "cpu", threads)
        write_reverse(reverse, stored.description, part, threads)


def test_an_index_without_the_reverse(saved, complete):
    loaded = load_index(saved)
    assert WITHOUT.reverse is None
    assert loaded.reverse is None
    assert not loaded.has_reverse
    assert not WITHOUT.has_reverse
    assert np.array_equal(loaded.forward.blocks, WITHOUT.forward.blocks)
    verify_index(loaded)
    assert json.loads((saved / "index.json").read_text())["version"] == 2
    others = contents(complete)
    for name, file in contents(saved).items():
        assert name == "index.json" or others[name] == file
    assert set(others) - set(contents(saved)) == {
        "reverse_blocks.npy",
        "reverse_separator_rows.npy",
    }


def test_an_index_with_both_has_version_1(complete):
    """Older versions can read it, and this version reads indexes of older ones."""
    description = (complete / "index.json").read_bytes()
    assert hashlib.sha256(description).hexdigest() == OF_VERSION_1
    assert json.loads(description)["version"] == 1
    loaded = load_index(complete)
    assert loaded.has_reverse
    verify_index(loaded)


def test_the_table_of_sizes(saved, complete):
    without, both = size_table(load_index(saved)), size_table(load_index(complete))
    assert "reverse BWT" not in without
    assert parse_size_table(without) == part_sizes(WITHOUT)
    names = [part.name for part in parse_size_table(both)]
    assert names == ["forward BWT", "reverse BWT", "suffix array", "prefix table", "packed genome"]
    kept = [part for part in parse_size_table(both) if part.name != "reverse BWT"]
    assert kept == parse_size_table(without)
    total = [int(table.splitlines()[-1].split()[1].replace(",", "")) for table in (without, both)]
    reverse = load_index(complete).reverse
    assert total[1] - total[0] == reverse.blocks.nbytes + reverse.separator_rows.nbytes


@pytest.mark.parametrize("threads", [1, 3])
def test_added_later_is_made_at_once(saved, complete, threads):
    before = {path.name: path.stat() for path in saved.iterdir()}
    (saved / ".snakemake_timestamp").touch()
    mapped = load_index(saved)
    blocks = mapped.forward.blocks
    add(saved, threads)
    (saved / ".snakemake_timestamp").unlink()
    assert contents(saved) == contents(complete)
    verify_index(load_index(saved), threads)
    assert os.listdir(saved.parent) == ["index"]
    # Existing files are unchanged, for programs that use them.
    for name, was in before.items():
        now = (saved / name).stat()
        assert name == "index.json" or (now.st_ino, now.st_mtime_ns) == (
            was.st_ino,
            was.st_mtime_ns,
        )
    assert np.array_equal(blocks, WITHOUT.forward.blocks)
    assert mapped.reverse is None


@pytest.mark.parametrize("at", ["reverse_blocks.npy", "reverse_separator_rows.npy", "index.json"])
def test_stopped_while_files_are_moved(saved, complete, monkeypatch, at):
    before, replace = contents(saved), os.replace

    def stop(source, target):
        if Path(source).name == at:
            raise OSError("stopped")
        replace(source, target)

    monkeypatch.setattr(os, "replace", stop)
    with pytest.raises(OSError, match="stopped"):
        add(saved)
    monkeypatch.undo()
    assert before.items() <= contents(saved).items()
    assert not load_index(saved).has_reverse
    verify_index(load_index(saved))
    assert os.listdir(saved.parent) == ["index"]
    # Waiting files do not prevent adding the BWT, nor another index.
    other = Path(shutil.copytree(saved, saved.parent / "other"))
    add(saved)
    assert contents(saved) == contents(complete)
    save_index(WITHOUT, other)
    assert contents(other) == before


def test_one_checksum_with_and_without(saved, complete):
    """Stages of mapping may run while the reverse BWT is added."""
    assert load_index(saved).checksum == load_index(complete).checksum
    save_index(index_of(HOSTILE["with gaps"], 64, 4, 2, with_reverse=False), saved)
    assert load_index(saved).checksum != load_index(complete).checksum


def test_a_checksum_of_the_genome_alone(saved):
    """Stages of allmap may run while the index gets other sampling rates."""
    before = load_index(saved)
    save_index(index_of(HOSTILE["with gaps"], 128, 8, 3, with_reverse=False), saved)
    after = load_index(saved)
    assert after.text_checksum == before.text_checksum
    assert after.checksum != before.checksum
    save_index(index_of([b"ACGTACGT"], 64, 3, 2, with_reverse=False), saved)
    assert load_index(saved).text_checksum != before.text_checksum


@pytest.mark.parametrize("name", ["reverse_blocks.npy", "reverse_separator_rows.npy"])
def test_a_reverse_that_is_lost_or_damaged(complete, tmp_path, name):
    copy = Path(shutil.copytree(complete, tmp_path / "copy"))
    whole = (copy / name).read_bytes()
    (copy / name).write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(InputError, match="the file is damaged between bytes 0 and"):
        _ = load_index(copy).reverse
    (copy / name).unlink()
    with pytest.raises(InputError, match="the file is missing"):
        verify_index(load_index(copy))


def test_a_wrong_reverse_is_found():
    from dataclasses import replace

    other = index_of([HOSTILE["with gaps"][0][::-1], *HOSTILE["with gaps"][1:]], 64, 3, 2)
    with pytest.raises(InputError, match="^the index is invalid "):
        verify_index(replace(WITHOUT, reverse=other.reverse))


def test_errors_about_a_missing_reverse_name_the_remedy(saved, complete, tmp_path):
    require_reverse(load_index(complete), "a search")
    with pytest.raises(UsageError) as error:
        require_reverse(WITHOUT, "a search with mismatches")
    assert str(error.value) == (
        "the index has no reverse BWT, which a search with mismatches requires: build it with "
        "with_reverse=True, or add it with add_reverse()"
    )
    strange = tmp_path / "my index"
    saved.rename(strange)
    with pytest.raises(UsageError) as error:
        require_reverse(load_index(strange), "a search with mismatches")
    assert str(error.value) == (
        f"{strange}: no reverse BWT, which a search with mismatches requires: add it with "
        f"bwarp index -o '{strange}' --with-reverse"
    )
