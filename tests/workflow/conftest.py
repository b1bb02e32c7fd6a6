"""A copy of the checkout in which Snakemake runs; its name breaks careless quoting."""

import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.helpers.cases.small_genome import write_genome
from tests.helpers.programs.program_server import ProgramServer

PARTS = (
    "Snakefile", "workflow", "profiles", "config", ".test", "envs", "scripts", "bwarp", "README.md"
)  # fmt: skip


TARGETS = (
    "default",
    "all",
    "index",
    "map",
    "allmap",
    "seeds",
    "offtargets",
    "guides",
    "primers",
    "mems",
    "scan",
    "pairs",
    "search",
    "qc",
)


class Copy:
    """A copy of the checkout, and Snakemake in it."""

    def __init__(self, folder: Path, server: ProgramServer, environment: dict):
        self.folder = folder
        self.server = server
        self.environment = environment

    def __truediv__(self, name) -> Path:
        return self.folder / name

    def command(self, *arguments) -> list[str]:
        return [sys.executable, "-m", "snakemake", *map(str, arguments)]

    def snakemake(self, *arguments, cwd=None, env=None, rc=0) -> str:
        """Run Snakemake; return its output, without warnings about the machine."""
        code, said, _ = self.server.run(
            ["-m", "snakemake", *arguments],
            cwd=cwd or self.folder,
            environment=self.environment | (env or {}),
            merged=True,
        )
        assert code == rc, said
        return re.sub(r"Using workflow specific profile .*\n|Assuming unrestricted .*\n", "", said)

    def planned(self, *arguments) -> list[str]:
        """Return the rules that a run would execute, except target rules."""
        output = self.snakemake("-n", *arguments)
        rules = re.findall(r"^(?:local)?rule (\w+):$", output, re.MULTILINE)
        return [rule for rule in rules if rule not in TARGETS]


@pytest.fixture(scope="session")
def make_copy(checkout, tmp_path_factory, snakemake_server, request):
    """Return a function that copies the checkout and adds a small genome, `small.fa`.

    With forks, its jobs do not start Python, and use the package of the checkout.
    """

    def make(name: str = "with späces", forks: bool = False) -> Copy:
        folder = tmp_path_factory.mktemp("copy") / name
        folder.mkdir()
        for part in PARTS:
            source = checkout / part
            if source.is_dir():
                shutil.copytree(source, folder / part)
            else:
                shutil.copy2(source, folder / part)
        write_genome(folder / "small.fa", 20_000)
        environment = {"XDG_CACHE_HOME": str(folder.parent / "cache")}
        if forks:
            environment |= request.getfixturevalue("forked_python").environment
        return Copy(folder, snakemake_server, environment)

    return make
