"""bwarp map --qc on a GPU writes the files of the CPU."""

import pytest

from bwarp.gpu import nvcomp
from tests.helpers.programs.mapped_reads import SCRIPT

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("compress", ["auto", "gpu", "host"])
@pytest.mark.parametrize("output", ["s.bam", "s.cram", "s.sam"])
@pytest.mark.parametrize("more", [(), ("--mark-duplicates", "--all")])
def test_files_are_those_of_the_cpu(run_program, folder, tmp_path, compress, output, more):
    if compress != "auto" and output != "s.bam":
        pytest.skip("only BAM is compressed by bwarp")
    if compress == "gpu" and not nvcomp.is_installed():
        pytest.skip("needs nvCOMP: pip install nvidia-libnvcomp-cu13")
    texts = {}
    for backend in ("cpu", "cuda"):
        place = tmp_path / backend
        place.mkdir()
        (place / "r.bed").write_text("chr2\t100\t2000\tname\nchr1\t5\t50\n")
        compression = ("--compress", compress) if backend == "cuda" else ()
        done = run_program(
            SCRIPT, "--index", folder / "index", "-1", folder / "1.fq", "-2", folder / "2.fq",
            "-o", place / output, "--sort", "--qc", place / "qc", "--qc-regions", place / "r.bed",
            "--backend", backend, *compression, *more,
        )  # fmt: skip
        assert done.rc == 0, done.stderr
        texts[backend] = {
            path.name.removeprefix("s."): path.read_bytes() for path in (place / "qc").iterdir()
        }
    assert texts["cuda"] == texts["cpu"]
