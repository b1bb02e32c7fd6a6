"""bwarp.find_offtargets returns the sites that bwarp offtargets writes."""

import random

import numpy as np
import pandas as pd
import pytest

import bwarp
from bwarp.index.store import save_index
from bwarp.reference import codes_of
from bwarp.sequence import decode
from tests.helpers.oracles.loci_oracle import index_of_codes
from tests.helpers.programs.programs_here import run_here


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sites")
    rng = random.Random(8)
    codes = [rng.randrange(4) for _ in range(6000)]
    text = "".join("ACGT"[code] for code in codes)
    at = [at for at in range(100, 3000) if text[at + 21 : at + 23] == "GG"][::40]
    guides = {f"g{i}": text[a : a + 20] for i, a in enumerate(at)}
    for a in at:
        # A copy with a mismatch, and one without one of the bases.
        copy = codes[a : a + 23]
        codes[a + 3000 : a + 3023] = [*copy[:5], 3 - copy[5], *copy[6:]]
        codes[a + 3030 : a + 3052] = [*copy[:9], *copy[10:]]
    save_index(index_of_codes([codes[:3500], codes[3500:]]), folder / "index")
    lines = (f">{name}\n{guide}\n" for name, guide in guides.items())
    (folder / "guides.fa").write_text("".join(lines))
    return folder, guides


@pytest.mark.parametrize("bulges", [0, 1])
def test_the_rows_of_the_program(given, bulges):
    folder, guides = given
    done = run_here(
        "find_offtargets", "--index", folder / "index", "--guides", folder / "guides.fa", "-o",
        folder / "o.tsv", "--mismatches", 3, "--dna-bulges", bulges, "--rna-bulges", bulges,
        folder=folder,
    )  # fmt: skip
    assert done.rc == 0, done.said
    table = bwarp.read_table(folder / "o.tsv")
    assert len(table) > len(guides)
    for source in (folder / "guides.fa", guides):
        sites = bwarp.find_offtargets(
            folder / "index", source, dna_bulges=bulges, rna_bulges=bulges
        )
        assert sites.dtypes.tolist() == table.dtypes.tolist()
        assert list(sites) == list(table)
        for name in sites:
            if name in ("cfd", "mit"):
                assert np.allclose(sites[name], table[name], atol=1e-6, equal_nan=True)
            else:
                assert sites[name].tolist() == table[name].tolist()


def test_without_a_site_or_a_pam(given):
    folder, _ = given
    sites = bwarp.find_offtargets(folder / "index", ["ACGT" * 5], mismatches=0)
    assert sites.empty
    assert sites.cfd.dtype == float
    free = bwarp.find_offtargets(folder / "index", given[1], pam="none", mismatches=0)
    assert set(free.cut) == {-1}
    assert set(free.pam) == {""}
    done = run_here(
        "find_offtargets", "--index", folder / "index", "--guides", folder / "guides.fa", "-o",
        folder / "free.tsv", "--mismatches", 0, "--pam", "none", folder=folder,
    )  # fmt: skip
    assert done.rc == 0, done.said
    table = bwarp.read_table(folder / "free.tsv")
    pd.testing.assert_frame_equal(free, table)
    damaged = (folder / "free.tsv").read_text().replace("\t+\t", "\t+\tx", 1)
    (folder / "damaged.tsv").write_text(damaged)
    with pytest.raises(
        bwarp.InputError, match="'x' in column cut is not a number: write the table again"
    ):
        bwarp.read_table(folder / "damaged.tsv")


def test_guides_with_their_pam(given):
    folder, guides = given
    with_pam = {name: f"{guide}TGG" for name, guide in guides.items()}
    alone = bwarp.find_offtargets(folder / "index", guides)
    cut = bwarp.find_offtargets(folder / "index", with_pam, guides_have_pam=True)
    pd.testing.assert_frame_equal(cut, alone)
    with pytest.warns(UserWarning, match="every guide ends with the PAM NGG.*guides_have_pam=True"):
        bwarp.find_offtargets(folder / "index", with_pam)
    with pytest.raises(bwarp.InputError, match="guides, guide g0 does not end with the PAM NGG"):
        bwarp.find_offtargets(folder / "index", {"g0": "ACGT" * 5}, guides_have_pam=True)
    with pytest.raises(bwarp.UsageError, match="guides_have_pam=True requires a PAM"):
        bwarp.find_offtargets(folder / "index", guides, pam="none", guides_have_pam=True)


@pytest.fixture(scope="module")
def others(given):
    """Return variants and a genome with one of them, and its alignment."""
    folder, guides = given
    genome = bwarp.Index.open(folder / "index").fm_index.reference
    text = decode(codes_of(genome)).decode()
    at = text.index(next(iter(guides.values()))) + 4
    alt = "ACGT"["ACGT".index(text[at]) - 1]
    (folder / "v.vcf").write_text(
        "##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\ts\n"
        f"{genome.names[0]}\t{at + 1}\t7\t{text[at]}\t{alt}\t.\t.\t.\tGT\t0|1\n"
    )
    (folder / "samples.tsv").write_text("s\tnorth\n")
    (folder / "kid.fa").write_text(f">k\n{text[:at]}{alt}{text[at + 1 : 3500]}\n")
    (folder / "kid.paf").write_text(
        f"k\t3500\t0\t3500\t+\t{genome.names[0]}\t3500\t0\t3500\t3499\t3500\t60\tcg:Z:3500M\n"
    )
    return folder, guides


@pytest.mark.parametrize(
    "names",
    [("variants",), ("variants", "populations"), ("genomes",), ("genomes", "alignments")],
)
def test_variants_and_genomes(others, names):
    folder, guides = others
    files = {
        "variants": "v.vcf", "populations": "samples.tsv", "genomes": "kid.fa",
        "alignments": "kid.paf",
    }  # fmt: skip
    more = {name: folder / files[name] for name in names}
    flags = [word for name, path in more.items() for word in (f"--{name}", path)]
    done = run_here(
        "find_offtargets", "--index", folder / "index", "--guides", folder / "guides.fa", "-o",
        folder / "o.tsv", *flags, folder=folder,
    )  # fmt: skip
    assert done.rc == 0, done.said
    table = bwarp.read_table(folder / "o.tsv")
    sites = bwarp.find_offtargets(folder / "index", guides, **more)
    pd.testing.assert_frame_equal(sites, table)
    several = {
        name: str(path) if name == "populations" else [str(path)] for name, path in more.items()
    }
    pd.testing.assert_frame_equal(bwarp.find_offtargets(folder / "index", guides, **several), table)
    assert set(sites.origin) == {"reference", "alternative"}
    assert set(map(str, table.dtypes)) == {"str", "int64", "float64"}
    plain = bwarp.find_offtargets(folder / "index", guides)
    known = sites[sites.origin == "reference"].reset_index(drop=True)[list(plain)]
    pd.testing.assert_frame_equal(known, plain, atol=1e-6)


def test_variants_and_genomes_together(others):
    folder, guides = others
    more = {"variants": folder / "v.vcf", "genomes": folder / "kid.fa"}
    with pytest.raises(bwarp.UsageError, match="genomes cannot be combined with variants"):
        bwarp.find_offtargets(folder / "index", guides, **more)
    with pytest.raises(bwarp.UsageError, match="populations requires variants"):
        bwarp.find_offtargets(folder / "index", guides, populations=folder / "samples.tsv")
    with pytest.raises(bwarp.UsageError, match="alignments requires genomes"):
        bwarp.find_offtargets(folder / "index", guides, alignments=folder / "kid.paf")


def test_refusals(given):
    folder, guides = given
    with pytest.raises(
        bwarp.InputError, match="guides\\[0\\] is of type bytes: a guide must be a str"
    ):
        bwarp.find_offtargets(folder / "index", [b"ACGT" * 5])
    with pytest.raises(bwarp.UsageError, match="mismatches 7 is not a whole number from 0 to 6"):
        bwarp.find_offtargets(folder / "index", guides, mismatches=7)
