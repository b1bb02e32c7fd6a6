"""Databases: order, round trips through a folder, and damaged folders."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from bwarp.alignment.scoring import AMINO_ACIDS, matrix_scoring
from bwarp.database_search.database import (
    load_database,
    read_database,
    save_database,
    sorted_database,
)
from bwarp.errors import InputError, UsageError

AGAIN = "make it again with bwarp search-index"


@pytest.fixture
def database():
    rng = np.random.default_rng(51)
    sequences = [rng.integers(0, 25, n, dtype=np.uint8) for n in (9, 3, 40, 3, 1)]
    return sorted_database(sequences, ["nine", "three", "forty", "drei", "µ"])


def names(database):
    return database.names.listed(range(database.count))


def test_sequences_are_sorted_by_length_then_place(database):
    assert np.diff(database.offsets).tolist() == [1, 3, 3, 9, 40]
    assert database.order.tolist() == [4, 1, 3, 0, 2]
    assert names(database) == ["µ", "three", "drei", "nine", "forty"]


def test_a_folder_gives_back_what_was_saved(database, tmp_path):
    save_database(database, AMINO_ACIDS, tmp_path / "db")
    loaded = load_database(tmp_path / "db", AMINO_ACIDS)
    for name in ("codes", "offsets", "order"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(database, name))
    assert names(loaded) == names(database)
    assert not loaded.codes.flags.owndata


def test_a_file_is_read_with_its_record_numbers(tmp_path):
    path = tmp_path / "d.fa"
    path.write_text(">b two\nARND\n>a one\nWU\n")
    database = read_database(path, matrix_scoring("BLOSUM62", 11, 1).code_of_byte)
    assert (names(database), database.order.tolist()) == (["a", "b"], [1, 0])
    assert bytes(AMINO_ACIDS[code] for code in database.codes) == b"WCARND"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (">a\nAR\n>b\n\n>c\nAR\n", "{path}, record 2 (b) has no sequence: remove it"),
        ("", "{path}: the file contains no sequences"),
    ],
)
def test_bad_files_are_refused(tmp_path, text, message):
    path = tmp_path / "d.fa"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_database(path, matrix_scoring("BLOSUM62", 11, 1).code_of_byte)
    assert str(error.value) == message.format(path=path)


def damage(folder, name, change):
    path = folder / name
    path.write_bytes(change(path.read_bytes()))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda f: damage(f, "codes.npy", lambda b: b[:-1] + bytes([b[-1] ^ 1])),
            "{folder}/codes.npy: the file is damaged between bytes 0 and 184: " + AGAIN,
        ),
        (
            lambda f: damage(f, "order.npy", lambda b: b[:-3]),
            "{folder}/order.npy: the file has 165 bytes instead of 168: " + AGAIN,
        ),
        (
            lambda f: (f / "names.npy").unlink(),
            "{folder}/names.npy: the file is missing: " + AGAIN,
        ),
        (
            lambda f: damage(f, "database.json", lambda b: b[:40]),
            "{folder}/database.json: the file is damaged: " + AGAIN,
        ),
        (
            lambda f: (f / "database.json").write_text(
                json.dumps(json.loads((f / "database.json").read_text()) | {"version": 0})
            ),
            "{folder}: the database has format version 0, but this bwarp reads version 2: " + AGAIN,
        ),
        (
            lambda f: (f / "database.json").unlink(),
            "{folder}: not a prepared database (no database.json): make one with "
            "bwarp search-index D.fa -o {folder}",
        ),
    ],
)
def test_damaged_folders_are_refused(database, tmp_path, spoil, message):
    folder = tmp_path / "db"
    save_database(database, AMINO_ACIDS, folder)
    spoil(folder)
    with pytest.raises(InputError) as error:
        load_database(folder, AMINO_ACIDS)
    assert str(error.value) == message.format(folder=folder)


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        ("codes", {0: 99}, "99 is not the code of a letter"),
        ("offsets", {2: 90}, "90 is not in 0 to 56"),
        ("offsets", {2: 0}, "not in rising order from 0 to 56"),
        ("offsets", {2: 7}, "the sequences are not in order of length"),
        ("order", {1: -1}, "-1 is not in 0 to 4"),
        ("name_offsets", {5: 22}, "22 is not in 0 to 20"),
    ],
)
def test_numbers_that_no_program_wrote_are_refused(database, tmp_path, name, change, problem):
    arrays = {"codes": database.codes, "offsets": database.offsets, "order": database.order}
    if name in arrays:
        changed = arrays[name].copy()
        for at, value in change.items():
            changed[at] = value
        save_database(replace(database, **{name: changed}), AMINO_ACIDS, tmp_path / "d")
    else:
        bounds = database.names.bounds.copy()
        for at, value in change.items():
            bounds[at - 1, 1] = value
        named = database.names._replace(bounds=bounds)
        part = SimpleNamespace(part=lambda *_: named)
        save_database(replace(database, names=part), AMINO_ACIDS, tmp_path / "d")
    with pytest.raises(InputError) as error:
        load_database(tmp_path / "d", AMINO_ACIDS, 2)
    assert str(error.value) == (
        f"{tmp_path}/d/{name}.npy: the database is invalid ({problem}): {AGAIN}"
    )


def test_a_database_of_another_alphabet_is_refused(database, tmp_path):
    save_database(database, AMINO_ACIDS, tmp_path / "db")
    with pytest.raises(UsageError) as error:
        load_database(tmp_path / "db", b"ACGTN")
    assert str(error.value) == (
        f"{tmp_path}/db: prepared for the alphabet {AMINO_ACIDS.decode()}, but the scores are "
        "for ACGTN: use a matrix of the same kind, or " + AGAIN
    )


def test_a_prepared_folder_is_replaced_by_another_one(tmp_path):
    sequences = [np.array([1, 2], np.uint8)]
    save_database(sorted_database(sequences, ["a"]), AMINO_ACIDS, tmp_path / "d")
    save_database(sorted_database(sequences * 2, ["a", "b"]), AMINO_ACIDS, tmp_path / "d")
    assert names(load_database(tmp_path / "d", AMINO_ACIDS)) == ["a", "b"]
