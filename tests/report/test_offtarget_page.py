"""The web page of off-targets: which sites it holds, its numbers, and that no name breaks it."""

import gzip
import json
import random
import re

import pytest

from bwarp.api.offtargets import SITES
from bwarp.errors import InputError
from bwarp.offtargets.genome_columns import GENOME_COLUMNS
from bwarp.offtargets.variant_columns import VARIANT_COLUMNS
from bwarp.report import worst_sites
from bwarp.report.offtarget_page import offtarget_page

PLAIN = list(SITES)
GUIDE_COLUMNS = ["guide", "sequence", "n0", "n1", "n0_dna", "sites"]
GUIDE_COLUMNS += ["cfd_specificity", "mit_specificity"]
GUIDE = "GAGTCCGAGCAGAAGAAGAA"


def row_of(columns, **given):
    usual = {
        "guide": "a", "guide_aligned": GUIDE, "site_aligned": GUIDE, "pam": "TGG", "contig": "c",
        "start": 5, "end": 25, "strand": "+", "cut": 22, "mismatches": 0, "dna_bulge": 0,
        "rna_bulge": 0, "seed_mismatches": 0, "cfd": "1.000000", "mit": "100.000000",
        "alignment": 1, "origin": "reference",
    }  # fmt: skip
    assert set(given) <= set(columns)
    return {column: str((usual | given).get(column, "")) for column in columns}


def written(folder, columns, rows, specificities):
    """Write both tables; return their paths."""
    sites, guides = folder / "sites.tsv", folder / "sites.guides.tsv"
    lines = [columns, *([row[column] for column in columns] for row in rows)]
    sites.write_text("".join("\t".join(line) + "\n" for line in lines))
    lines = [GUIDE_COLUMNS]
    for guide, specificity in specificities.items():
        lines.append([guide, GUIDE, "1", "2", "3", "6", specificity, specificity and "50.000000"])
    guides.write_text("".join("\t".join(line) + "\n" for line in lines))
    return sites, guides


def data_in(page):
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
    return json.loads(text)


def random_rows(rng, columns, guides):
    for guide in guides:
        for start in range(rng.choice((0, 1, 40))):
            dna, rna = rng.choice(((0, 0), (0, 0), (1, 0), (1, 2)))
            score = "" if dna else f"{rng.choice((0, 1, 0.25, rng.random())):.6f}"
            yield row_of(
                columns, guide=guide, start=start, mismatches=rng.randrange(5), dna_bulge=dna,
                rna_bulge=rna, cfd=score, alignment=rng.choice((1, 1, 2, 11)),
                origin=rng.choice(("reference", "alternative")), frequency="0.5",
            )  # fmt: skip


@pytest.mark.parametrize("block_bytes", [300, 1 << 20])
@pytest.mark.parametrize("most", [1, 3, 1000])
def test_the_worst_sites_of_each_guide(tmp_path, monkeypatch, most, block_bytes):
    monkeypatch.setattr(worst_sites, "_BLOCK_BYTES", block_bytes)
    columns = [*PLAIN, "alignment", *VARIANT_COLUMNS]
    rng = random.Random(most)
    guides = ["a", "b", "long" * 30, "ab", "x"]
    rows = list(random_rows(rng, columns, guides))
    sites, listed = written(tmp_path, columns, rows, dict.fromkeys(reversed(guides), "0.5"))
    found = {
        guide["name"]: guide for guide in data_in(offtarget_page(sites, listed, most))["guides"]
    }
    for guide in guides:
        its = [row for row in rows if row["guide"] == guide and row["alignment"] == "1"]
        assert found[guide]["sites"] == len(its)
        assert found[guide]["alternative"] == sum(row["origin"] == "alternative" for row in its)

        def rank(row):
            edits = int(row["mismatches"]) + int(row["dna_bulge"]) + int(row["rna_bulge"])
            return (not row["cfd"], -float(row["cfd"] or 0), edits)

        wanted = []
        for origin in ("reference", "alternative"):
            for is_scored in (True, False):
                group = [row for row in its if row["origin"] == origin]
                group = [row for row in group if bool(row["cfd"]) == is_scored]
                wanted += sorted(group, key=rank)[:most]
        wanted.sort(key=rank)
        assert found[guide]["worst"] == [list(row.values()) for row in wanted]


def test_ranks_and_specificities_of_populations(tmp_path):
    columns = [*PLAIN, *VARIANT_COLUMNS]

    def alternative(**given):
        return row_of(columns, origin="alternative", **given)

    rows = [
        # The target, which some haplotypes lack.
        row_of(columns, effect="loss", lost=7, variants="c:9:A:G"),
        # A site whose score rises by 0.5 on a tenth of haplotypes.
        alternative(
            cfd="0.750000", cfd_change="0.500000", frequency="0.100000", populations="afr=0.2;eur=0"
        ),
        # A new site: the PAM of the reference may have a score, but is not a site.
        alternative(
            cfd="0.400000", cfd_change="0.300000", pam_change="made", frequency="0.500000",
            populations="eur=1",
        ),
        # Neither a lower score, nor a site without a score, adds anything.
        alternative(cfd="0.100000", cfd_change="-0.300000", frequency="0.9", populations="afr=1"),
        alternative(cfd="", frequency="0.9", populations="afr=1", dna_bulge=1),
        row_of(columns, guide="b", effect="loss", mismatches=1),
    ]  # fmt: skip
    paths = written(tmp_path, columns, rows, {"b": "0.250000", "none": "", "a": "0.500000"})
    data = data_in(offtarget_page(*paths))
    assert [guide["name"] for guide in data["guides"]] == ["a", "b", "none"]
    a, b, none = data["guides"]
    assert a["specificity"] == pytest.approx(
        {"": 1 / (2 + 0.05 + 0.2), "afr": 1 / (2 + 0.1), "eur": 1 / (2 + 0.4)}
    )
    assert sorted(data["populations"]) == ["afr", "eur"]
    assert (a["n_lost"], a["lost"]) == (1, [list(rows[0].values())])
    assert (a["mismatches"], a["bulges"]) == ([1, 2], 3)
    assert (b["n_lost"], b["specificity"]) == (0, {})
    assert (none["cfd"], none["worst"]) == (None, [])


def test_sites_of_other_genomes(tmp_path):
    columns = [*PLAIN, *GENOME_COLUMNS]
    rows = [
        row_of(columns, effect="loss", lost=1, coordinates="reference", genomes=1),
        row_of(
            columns, origin="alternative", coordinates="child", genome_names="child", genomes=1,
            cfd="0.500000", frequency="0.500000",
        ),
    ]  # fmt: skip
    (guide,) = data_in(offtarget_page(*written(tmp_path, columns, rows, {"a": "0.500000"})))[
        "guides"
    ]
    assert guide["specificity"] == pytest.approx({"": 1 / (2 + 0.25)})
    assert (guide["alternative"], guide["n_lost"]) == (1, 1)


def test_a_specificity_that_is_rounded_to_0(tmp_path):
    columns = [*PLAIN, *VARIANT_COLUMNS]
    rows = [row_of(columns, origin="alternative", frequency="0.5")]
    (guide,) = data_in(offtarget_page(*written(tmp_path, columns, rows, {"a": "0.000000"})))[
        "guides"
    ]
    assert guide["specificity"] == {"": 0}


def test_names_cannot_write_into_the_page(tmp_path):
    name = "</script><script>alert(1)</script><!--<b>&amp;\"'"
    columns = [*PLAIN, "annotation"]
    rows = [row_of(columns, guide=name, contig=name, annotation=name)]
    folder = tmp_path / "<i>"
    folder.mkdir()
    page = offtarget_page(*written(folder, columns, rows, {name: "1.000000"}))
    assert page.count("<script") == page.count("</script>") == 2
    for text in ("<b>", "<i>", "<!--", "alert"):
        assert text not in page.replace("\\u003c", "").replace("script>alert", "")
    (guide,) = data_in(page)["guides"]
    assert guide["name"] == name
    assert guide["worst"] == [list(rows[0].values())]


def test_a_page_takes_nothing_from_elsewhere_and_is_reproducible(tmp_path):
    paths = written(tmp_path, PLAIN, [row_of(PLAIN)], {"a": "1.000000"})
    page = offtarget_page(*paths)
    assert page == offtarget_page(*paths)
    assert not re.search(r"//\w|\bsrc=|@import|url\(|<link", page.replace("// ", ""))
    link = "https://igv.org/app/?locus={contig}:{start}-{end}"
    assert data_in(offtarget_page(*paths, link=link))["link"] == link


def test_no_sites_and_no_guides(tmp_path):
    paths = written(tmp_path, PLAIN, [], {"a": "1.000000"})
    (guide,) = data_in(offtarget_page(*paths))["guides"]
    assert (guide["sites"], guide["worst"], guide["cfd"]) == (0, [], 1)
    assert data_in(offtarget_page(*written(tmp_path, PLAIN, [], {})))["guides"] == []


def test_fewer_rows_of_many_guides(tmp_path):
    rows = [row_of(PLAIN, guide=f"g{i}", start=j) for i in range(1000) for j in range(30)]
    paths = written(tmp_path, PLAIN, rows, {f"g{i}": "0.500000" for i in range(1000)})
    data = data_in(offtarget_page(*paths))
    assert data["rows"] == 5
    assert {len(guide["worst"]) for guide in data["guides"]} == {5}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("guide\t", "query\t", 1), "not a table of sites: give a file"),
        (lambda text: "", "not a table of sites: give a file"),
        (lambda text: text[:-1], "the last line is not complete: write the table again"),
        (lambda text: text + "a\tb\n", "line 3: not a row of a table of sites (colum"),
        (lambda text: text.replace("\ta", "\nc"), "line 2: not a row of a table"),
        (lambda text: text.replace("\na\t", "\nz\t"), "line 2: guide z is not in the table of"),
        (lambda text: text.replace("\t0.5", "\t0.55"), "(no score in the column cfd)"),
        (lambda text: text.replace("\t0.5", "\t.,5"), "(no score in the column cfd)"),
        (lambda text: text.replace("\t22\t0", "\t22\t"), "(no digit in the column mis"),
        (lambda text: text.replace("0.125000", "often"), "(no score or frequency of a"),
    ],
)
def test_other_files_are_refused(tmp_path, change, message):
    columns = [*PLAIN, *VARIANT_COLUMNS]
    row = row_of(columns, cfd="0.500000", origin="alternative", frequency="0.125000")
    sites, guides = written(tmp_path, columns, [row], {"a": "1.000000"})
    sites.write_text(change(sites.read_text()))
    with pytest.raises(InputError, match=re.escape(message)):
        offtarget_page(sites, guides)


def test_other_tables_of_guides_are_refused(tmp_path):
    sites, guides = written(tmp_path, PLAIN, [], {"a": "1.000000"})
    for text in ("", "guide\tsequence\n", guides.read_text() + "b\n"):
        guides.write_text(text)
        with pytest.raises(InputError, match="not a table of guides: give a file that bwarp"):
            offtarget_page(sites, guides)


def test_the_program(run_program, tmp_path):
    sites, guides = written(tmp_path, PLAIN, [row_of(PLAIN)], {"a": "1.000000"})
    packed = tmp_path / "packed.tsv.gz"
    packed.write_bytes(gzip.compress(sites.read_bytes()))
    guides.rename(tmp_path / "packed.guides.tsv")
    done = run_program("report_offtargets.py", packed, "-o", "o.html", cwd=tmp_path)
    assert done == (0, "", "")
    page = (tmp_path / "o.html").read_text()
    assert data_in(page)["table"] == str(packed)
    assert f"<title>Off-targets: {packed}</title>" in page
