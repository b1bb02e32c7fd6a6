"""bwarp offtargets: its tables in every format, its errors, and CRISPOR's guides."""

import csv
import gzip
import json

import pytest

from bwarp.index.store import save_index
from tests.helpers.oracles.index_oracle import index_of
from tests.helpers.oracles.offtargets_oracle import opposite, sites
from tests.helpers.oracles.seed_hits_oracle import GENOMES
from tests.helpers.programs.refusal import refusal

SCRIPT = "find_offtargets.py"
GUIDE = "GAGTCCGAGCAGAAGAAGAA"
#: A perfect site, one on the other strand with two mismatches, one with a DNA bulge, and one with
#: an RNA bulge.
CONTIGS = {
    "contig0": f"TTACA{GUIDE}TGGATTACC{opposite('GAGTCCTAGCAGAAGAAAAACGG')}TTA",
    "contig1": "CGAGTCCGAGCACGAAGAAGAATGGTTTTTGAGTCCGAGCAGAAAGAACGGA",
}
TSV_HEADER = (
    "guide\tguide_aligned\tsite_aligned\tpam\tcontig\tstart\tend\tstrand\tcut\tmismatches\t"
    "dna_bulge\trna_bulge\tseed_mismatches\tcfd\tmit\n"
)


def save(folder, contigs):
    save_index(index_of(contigs, with_reverse=False), folder)
    return folder


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("index") / "small.index"
    return save(folder, [contig.encode() for contig in CONTIGS.values()])


@pytest.fixture
def guides(tmp_path):
    path = tmp_path / "guides.fa"
    path.write_text(f">EMX1 x\n{GUIDE[:9]}\n{GUIDE[9:].lower()}\n")
    return path


@pytest.fixture
def refused(checkout, monkeypatch, capsys):
    """Return a function that runs the program in this process: exit code and last line."""
    script = checkout / "scripts" / SCRIPT
    return lambda *arguments: refusal(script, arguments, monkeypatch, capsys)


def test_the_table_and_its_sibling(run_program, index, guides, tmp_path):
    output = tmp_path / "new" / "out.tsv"
    output.parent.mkdir()
    limits = ("--mismatches", 2, "--dna-bulges", 1, "--rna-bulges", 2)
    run = ("--index", index, "--guides", guides, "-o", output, *limits)
    for threads in (1, 3):
        done = run_program(SCRIPT, *run, "--threads", threads)
        assert (done.rc, done.stdout) == (0, "")
        assert done.stderr.splitlines()[-1] == (
            "1 guide searched: 4 sites, 1 of them without mismatches or bulges"
        )
        assert output.read_text() == TSV_HEADER + (
            f"EMX1\t{GUIDE}\t{GUIDE}\tTGG\tcontig0\t5\t25\t+\t22\t0\t0\t0\t0\t1.000000\t100.000000\n"
            f"EMX1\t{GUIDE}\tGAGTCCtAGCAGAAGAAaAA\tCGG\tcontig0\t37\t57\t-\t40\t2\t0\t0\t1\t"
            "0.395604\t1.246810\n"
            "EMX1\tGAGTCCGAGCA-GAAGAAGAA\tGAGTCCGAGCACGAAGAAGAA\tTGG\tcontig1\t1\t22\t+\t19\t0\t1"
            "\t0\t0\t\t\n"
            "EMX1\tGAGTCCGAGCAGAAGAAGAA\tGAGTCCGAGCAGAA-A-GAA\tCGG\tcontig1\t30\t48\t+\t45\t0\t0"
            "\t2\t0\t\t\n"
        )
        counted = (tmp_path / "new/out.guides.tsv").read_text()
        head, line = (row.split("\t") for row in counted.splitlines())
        row = dict(zip(head, line, strict=True))
        assert row["guide"] == "EMX1"
        assert row["sequence"] == GUIDE
        assert [row[name] for name in ("n0", "n1", "n2", "n0_dna", "n0_rna", "n0_both")] == [
            "1", "0", "1", "1", "1", "0",
        ]  # fmt: skip
        assert float(row["cfd_specificity"]) == pytest.approx(1 / 1.395604, abs=1e-6)
        assert float(row["mit_specificity"]) == pytest.approx(100 * 100 / 101.246810, abs=1e-6)
        assert (row["sites"], row["complete"]) == ("4", "yes")
    assert len(list(output.parent.iterdir())) == 2


def test_other_formats_and_annotation(run_program, index, guides, tmp_path):
    (tmp_path / "a.bed").write_text("contig0\t0\t6\tgene1\ncontig0\t24\t50\tgene2\n")
    limits = ("--mismatches", 2, "--dna-bulges", 1, "--rna-bulges", 2)
    run = ("--index", index, "--guides", guides, *limits, "--annotation", tmp_path / "a.bed")

    def rows(output, *more):
        done = run_program(SCRIPT, *run, "-o", output, *more)
        assert done.rc == 0, done.stderr
        return done.stdout.splitlines()

    table = rows("-")
    assert table[0].endswith("\tmit\tannotation")
    assert [row.split("\t")[-1] for row in table[1:]] == ["gene1;gene2", "gene2", "", ""]
    assert rows("-", "--format", "cas-offinder") == [
        "#Id\tBulge Type\tcrRNA\tDNA\tChromosome\tLocation\tDirection\tMismatches\tBulge Size",
        f"EMX1\tX\t{GUIDE}NGG\t{GUIDE}TGG\tcontig0\t5\t+\t0\t0",
        f"EMX1\tX\t{GUIDE}NGG\tGAGTCCtAGCAGAAGAAaAACGG\tcontig0\t34\t-\t2\t0",
        "EMX1\tDNA\tGAGTCCGAGCA-GAAGAAGAANGG\tGAGTCCGAGCACGAAGAAGAATGG\tcontig1\t1\t+\t0\t1",
        "EMX1\tRNA\tGAGTCCGAGCAGAAGAAGAANGG\tGAGTCCGAGCAGAA-A-GAACGG\tcontig1\t30\t+\t0\t2",
    ]
    crispor = rows("-", "--format", "crispor")
    assert crispor[0].startswith("guideId\tguideSeq\tofftargetSeq\tmismatchPos\tmismatchCount\t")
    assert crispor[2] == (
        f"EMX1\t{GUIDE}NGG\tGAGTCCTAGCAGAAGAAAAACGG\t......*..........*..\t2\t1.246810\t0.395604\t"
        "contig0\t35\t57\t-\tgene2"
    )
    rows(tmp_path / "out.bed.gz")
    assert gzip.decompress((tmp_path / "out.bed.gz").read_bytes()).decode().splitlines() == [
        "contig0\t5\t25\tEMX1\t0\t+", "contig0\t37\t57\tEMX1\t2\t-",
        "contig1\t1\t22\tEMX1\t1\t+", "contig1\t30\t48\tEMX1\t2\t+",
    ]  # fmt: skip


@pytest.mark.parametrize("pams", ["NA,CN", "NNACA,CN,NA"])
def test_a_pam_at_the_other_end_and_all_alignments(run_program, tmp_path, pams):
    contigs = GENOMES["repeats"]
    index = save(tmp_path / "repeats.index", contigs)
    text = {f"contig{i}": contig.decode() for i, contig in enumerate(contigs)}
    guides = {"a": "ACACACACACACACACA", "b": opposite(text["contig0"][3:26])}
    (tmp_path / "guides.txt").write_text(
        "name,sequence\n" + "".join(f"{name},{guide}\n" for name, guide in guides.items())
    )
    run = ("--index", index, "--guides", tmp_path / "guides.txt", "--pam-side", 5, "-o", "-")
    options = ("--pam", pams, "--mismatches", 1, "--dna-bulges", 1, "--rna-bulges", 1)
    for more in ((), ("--all-alignments",)):
        done = run_program(SCRIPT, *run, *options, *more)
        found = [line.split("\t") for line in done.stdout.splitlines()[1:]]
        wanted = sites(text, guides, pams.split(","), 5, 1, 1, 1, every=bool(more))
        assert [[*row[:8], *row[9:12]] for row in found] == [list(map(str, row)) for row in wanted]
        assert len(found) > 40
        cuts = [int(row[5]) + 18 if row[7] == "+" else int(row[6]) - 18 for row in found]
        assert [int(row[8]) for row in found] == cuts
        assert {row[13] for row in found} == {""}
    assert any(row[-1] == "2" for row in found)
    done = run_program(SCRIPT, *run, *options, "--all-alignments", "--format", "cas-offinder")
    for line, row in zip(done.stdout.splitlines()[1:], found, strict=True):
        cells = line.split("\t")
        assert cells[3] == row[3] + row[2]
        assert int(cells[5]) == int(row[5]) - (len(row[3]) if row[7] == "+" else 0)
    done = run_program(SCRIPT, *run, *options, "--all-alignments", "--format", "crispor")
    for line, row in zip(done.stdout.splitlines()[1:], found, strict=True):
        cells = line.split("\t")
        assert cells[2] == (row[3] + row[2]).upper()
        before, behind = (len(row[3]), 0) if row[7] == "+" else (0, len(row[3]))
        assert [int(cells[8]), int(cells[9])] == [int(row[5]) - before + 1, int(row[6]) + behind]


def test_guides_alone_on_lines_and_without_a_pam(run_program, index):
    run = ("--index", index, "--guides", "-", "-o", "-", "--pam", "none", "--mismatches", 0)
    done = run_program(SCRIPT, *run, stdin=f"# mine\n{GUIDE.replace('T', 'u')}\n")
    line = f"{GUIDE.replace('T', 'u')}\t{GUIDE}\t{GUIDE}\t\tcontig0\t5\t25\t+\t\t0\t0\t0\t0\t\t"
    assert done.stdout.splitlines() == [TSV_HEADER.strip(), line]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no guides: write FASTA, or one sequence per line"),
        (">a\nACGTACGTACGTAC\n", "guide a has 14 bases: guides must have 15 to 40"),
        (">a\n" + "A" * 41, "guide a has 41 bases: guides must have 15 to 40"),
        (f">a\n{GUIDE}\n>a\n{GUIDE}\n", "two guides are named a: rename one"),
        (f"{GUIDE}\n{GUIDE}\n", f"two guides are named {GUIDE}: rename one"),
        (f">a\n{GUIDE}NGG\n", "guide a: 'N' at position 21 is not A, C, G or T: give the PAM "
         "with --pam, not in the guide"),
        (f">\n{GUIDE}\n", "line 1: a guide without a name: write >name"),
        (f"a\t{GUIDE}\t5\n", "line 1: found 3 columns: write a name and a "
         "sequence, or only a sequence"),
    ],
)  # fmt: skip
def test_guides_that_are_refused(refused, index, tmp_path, text, message):
    (tmp_path / "guides").write_text(text)
    run = ("--index", index, "--guides", tmp_path / "guides", "-o", tmp_path / "out.tsv")
    code, said = refused(*run)
    assert (code, message in said) == (1, True), said
    assert str(tmp_path / "guides") in said
    assert not (tmp_path / "out.tsv").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--pam", "NGZ"), "--pam NGZ: 'Z' is not a nucleotide letter (IUPAC): write PAMs such as "
         "NGG or NGG,NAG, or none"),
        (("--pam", "NGG,"), "--pam NGG,: a PAM must have 1 to 16 bases, or be none"),
        (("--mismatches", "7"), "argument -v/--mismatches: '7' is not a whole number from 0 to 6"),
        (("--dna-bulges", "3"), "argument --dna-bulges: '3' is not a whole number from 0 to 2"),
        (("-o", "out.txt"), "out.txt: the output must end in .tsv, .bed, .tsv.gz or .bed.gz, "
         "unless --format is given"),
        (("--report-sites", "5"), "--report-sites and --report-link require --report OUT.html"),
        (("--report", "o.html", "-o", "-"), "--report requires a table of sites in a file: use -o "
         "OUT.tsv"),
        (("--report", "o.html", "--format", "crispor"), "--report requires a table of sites in a "),
        (("--report-link", "javascript:{contig}"), "is not an address with {contig}, {start} and "
         "{end}: write one such as https://igv.org/app/?genome=hg38&locus={contig}:{start}-{end}"),
        (("--report-link", "https://x/{contig}:{begin}"), "is not an address with {contig}, "),
    ],
)  # fmt: skip
def test_options_that_are_refused(refused, index, guides, tmp_path, words, message):
    code, said = refused("--index", index, "--guides", guides, "-o", tmp_path / "out.tsv", *words)
    assert code == 2
    assert message in said


@pytest.mark.parametrize(
    ("pam", "side", "before", "behind"),
    [("NGG", 3, "", "TGG"), ("NAG,NNGRRT", 3, "", "ACGAGT"), ("TTTV,TTN", 5, "tttc", "")],
)
def test_guides_with_their_pam(run_program, index, tmp_path, pam, side, before, behind):
    sequences = (GUIDE, f"C{GUIDE[1:-1]}C")
    run = ("--index", index, "-o", "-", "--pam", pam, "--pam-side", side, "--guides", "-")

    def search(before, behind, *more):
        guides = "".join(f"g{i} {before}{one}{behind}\n" for i, one in enumerate(sequences))
        return run_program(SCRIPT, *run, "--dna-bulges", 1, *more, stdin=guides)

    ends = "ends" if side == 3 else "begins"
    warning = (
        f"warning: every guide {ends} with the PAM {pam}, which is searched for next to the guide: "
        "if the guides include their PAM, use --guides-have-pam\n"
    )
    assert warning in search(before, behind).stderr
    alone = search("", "")
    cut = search(before, behind, "--guides-have-pam")
    assert (cut.rc, cut.stdout) == (0, alone.stdout)
    assert len(alone.stdout.splitlines()) > (pam == "NGG")
    assert "warning" not in alone.stderr + cut.stderr


def test_no_warning_if_most_sequences_end_with_the_pam(run_program, index):
    run = ("--index", index, "-o", "-", "--pam", "NNG", "--guides", "-")
    assert "warning" not in run_program(SCRIPT, *run, stdin=f"{GUIDE}TGG\n").stderr


def test_guides_as_crispor_exports_them(run_program, shared_data, index, tmp_path):
    guides = [f"{row['targetSeq']}\n" for row in table(shared_data, "guides_hg19.tsv")]
    run = ("--index", index, "-o", "-", "--guides", "-")
    assert (
        "every guide ends with the PAM NGG"
        in run_program(SCRIPT, *run, stdin="".join(guides)).stderr
    )
    done = run_program(SCRIPT, *run, "--guides-have-pam", stdin="".join(guides))
    assert (done.rc, "warning" in done.stderr) == (0, False)


def test_a_guide_without_its_pam_is_named(refused, index, tmp_path):
    (tmp_path / "g.fa").write_text(f">a\n{GUIDE}TGG\n>b\n{GUIDE}\n>c\n{'A' * 41}TGG\n")
    run = ("--index", index, "--guides", tmp_path / "g.fa", "-o", tmp_path / "out.tsv")
    code, said = refused(*run, "--guides-have-pam")
    assert code == 1
    assert said.rstrip().endswith(
        "g.fa, guide b does not end with the PAM NGG: correct the guide or --pam, or omit "
        "--guides-have-pam"
    )
    code, said = refused(*run, "--guides-have-pam", "--pam", "TTTV", "--pam-side", 5)
    assert "guide a does not begin with the PAM TTTV: " in said
    code, said = refused(*run, "--guides-have-pam", "--pam", "none")
    assert code == 2
    assert "--guides-have-pam requires a PAM: use --pam, or omit --guides-have-pam" in said
    (tmp_path / "g.fa").write_text(f">c\n{'A' * 41}TGG\n")
    code, said = refused(*run, "--guides-have-pam")
    assert "guide c has 41 bases: guides must have 15 to 40" in said


def test_the_report(run_program, index, guides, tmp_path):
    output, report = tmp_path / "out.tsv", tmp_path / "out.html"
    run = ("--index", index, "--guides", guides, "-o", output, "--mismatches", 2)
    more = ("--report", report, "--report-sites", 1)
    done = run_program(SCRIPT, *run, *more, "--report-link", "https://x/{contig}:{start}")
    assert done.rc == 0, done.stderr
    sites = output.read_text().splitlines()
    assert len(sites) == 3
    with report.open() as file:
        (data,) = [line for line in file if 'id="data"' in line]
    data = json.loads(data.partition(">")[2].removesuffix("</script>\n"))
    assert data["columns"] == sites[0].split("\t")
    (guide,) = data["guides"]
    assert (guide["name"], guide["sites"], guide["mismatches"]) == ("EMX1", 2, [1, 0, 1])
    assert guide["worst"] == [sites[1].split("\t")]
    assert (data["rows"], data["link"]) == (1, "https://x/{contig}:{start}")
    done = run_program(SCRIPT, *run, "--report", output)
    assert "out.tsv: the name is used by another file of this run" in done.stderr


def test_parts_of_guides(run_program, refused, index, tmp_path):
    lines = "".join(f"g{i} {GUIDE[i:]}TGG\n" for i in range(5))
    (tmp_path / "g.txt").write_text(f"name guide\n{lines}")
    run = ("--index", index, "--guides", tmp_path / "g.txt", "--guides-have-pam")
    run = (*run, "--mismatches", 4)
    whole = run_program(SCRIPT, *run, "-o", "-").stdout.splitlines()
    assert {line.split("\t")[0] for line in whole[1:]} == {f"g{i}" for i in range(5)}
    rows = []
    for part in (1, 2, 3):
        lines = run_program(SCRIPT, *run, "-o", "-", "--part", f"{part}/3").stdout.splitlines()
        assert lines[0] == whole[0]
        rows += lines[1:]
    assert rows == whole[1:]
    code, said = refused(*run, "-o", tmp_path / "o.tsv", "--part", "2/6")
    assert (code, "g.txt: 5 guides cannot be cut into 6 parts: use fewer parts" in said) == (
        1,
        True,
    )
    code, said = refused(*run, "-o", tmp_path / "o.tsv", "--part", "3/2")
    assert (code, "'3/2' is not a part and a number of parts such as 3/20" in said) == (2, True)


def test_two_names_of_one_sequence_have_rows_each(run_program, index, tmp_path):
    (tmp_path / "g.fa").write_text(f">a\n{GUIDE}\n>b\n{GUIDE}\n")
    done = run_program(SCRIPT, "--index", index, "--guides", tmp_path / "g.fa", "-o", "-")
    assert [line.split("\t")[0] for line in done.stdout.splitlines()[1:]] == ["a", "a", "b", "b"]


def test_sites_of_crispor(run_program, shared_data, large_data, tmp_path):
    """For guides with complete lists, CRISPOR finds exactly the same sites with NGG."""
    guides = table(shared_data, "guides_hg19.tsv")
    (tmp_path / "guides.fa").write_text(
        "".join(f">{row['guideId']}\n{row['targetSeq']}\n" for row in guides)
    )
    genome = large_data("chr20.fa")
    index = tmp_path / "chr20.index"
    assert run_program("index_reference.py", genome, "-o", index, "--backend", "cpu").rc == 0
    run = ("--index", index, "--guides", tmp_path / "guides.fa", "-o", tmp_path / "out.tsv")
    done = run_program(SCRIPT, *run, "--guides-have-pam", "--mismatches", 4, "--format", "crispor")
    assert done.rc == 0, done.stderr
    listed = rows_by_site(table(shared_data, "expected_hg19_chr20.tsv"))
    with (tmp_path / "out.tsv").open() as file:
        found = rows_by_site(csv.DictReader(file, delimiter="\t"))
    names = {site[0] for site in listed}
    assert {site for site in found if site[0] in names} == set(listed)
    for site, row in listed.items():
        assert float(found[site]["cfdOfftargetScore"]) == pytest.approx(
            float(row["cfdOfftargetScore"]), abs=1e-6
        )


def rows_by_site(rows):
    columns = ("guideId", "start", "end", "strand", "offtargetSeq", "mismatchPos")
    return {
        tuple(row[name] for name in columns): row
        for row in rows
        if row["offtargetSeq"][21:] == "GG"
    }


def table(shared_data, name):
    with shared_data("crispr_crispor", name).open() as file:
        return list(csv.DictReader(file, delimiter="\t"))
