"""The programs that bwarp is compared with: whether they are installed, and their versions."""

import functools
import importlib.metadata
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

__all__ = ["PEERS", "found", "version_of"]


class Peer(NamedTuple):
    """Where to get a program or Python module, and the command that prints its version.

    A program without such a command is a link to a file whose name ends in its version, for example
    gasal2 to gasal2-106d94e.
    """

    source: str
    command: tuple[str, ...] = ()
    #: The distribution on PyPI, for a module.
    distribution: str = ""


#: By the name of the program, which must be on PATH, or of the module.
PEERS = {
    "bwa": Peer("apt install bwa", ("bwa",)),
    "bowtie": Peer("apt install bowtie", ("bowtie", "--version")),
    "bowtie2": Peer("apt install bowtie2", ("bowtie2", "--version")),
    "minimap2": Peer("apt install minimap2", ("minimap2", "--version")),
    "strobealign": Peer("https://github.com/ksahlin/strobealign", ("strobealign", "--version")),
    "minibwa": Peer("https://github.com/lh3/minibwa", ("minibwa", "version")),
    "mummer": Peer("apt install mummer", ("mummer",)),
    "mummer4": Peer("https://github.com/mummer4/mummer", ("mummer4", "--version")),
    "samtools": Peer("apt install samtools", ("samtools", "--version")),
    "bcftools": Peer("apt install bcftools", ("bcftools", "--version")),
    "freebayes": Peer("apt install freebayes", ("freebayes", "--version")),
    "delly": Peer("apt install delly", ("delly", "--version")),
    "lumpyexpress": Peer("apt install lumpy-sv", ("lumpy",)),
    "yara_mapper": Peer("apt install seqan-apps", ("yara_mapper", "--version")),
    "razers3": Peer("apt install seqan-apps", ("razers3", "--version")),
    "rabema_evaluate": Peer("apt install seqan-apps", ("rabema_evaluate", "--version")),
    "columba": Peer("https://github.com/biointec/columba", ("columba", "--help")),
    "cudasw4": Peer("https://github.com/asbschmidt/CUDASW4 (align; makedb as cudasw4-makedb)"),
    "gasal2": Peer("https://github.com/nahmedraja/GASAL2 (test_prog.out)"),
    "wfa.affine.gpu": Peer("https://github.com/quim0/WFA-GPU"),
    "parasail": Peer("pip install parasail", distribution="parasail"),
    "edlib": Peer("pip install edlib", distribution="edlib"),
    "sassy": Peer("pip install sassy-rs", distribution="sassy-rs"),
    "dwgsim": Peer("apt install dwgsim", ("dwgsim",)),
    "dnaio": Peer("pip install dnaio", distribution="dnaio"),
}


@functools.cache
def version_of(name: str) -> str | None:
    """Return a peer's version, "unknown" if it prints none, None if it is not installed."""
    peer = PEERS[name]
    if peer.distribution:
        try:
            return importlib.metadata.version(peer.distribution)
        except importlib.metadata.PackageNotFoundError:
            return None
    path = shutil.which(name)
    if not path:
        return None
    if not peer.command:
        return Path(path).resolve().name.removeprefix(name).lstrip("-") or "unknown"
    said = subprocess.run(peer.command, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    words = (said.stdout + said.stderr).decode(errors="replace")
    # SeqAn's programs also print the version of their library, further down.
    words = re.search(r"\d+(\.\d+)+[\w.-]*", words)
    return words[0] if words else "unknown"


@functools.cache
def found(name: str) -> bool:
    """Return whether a peer is installed; print the name of a missing one once."""
    if version_of(name) is None:
        print(f"{name}: not installed ({PEERS[name].source})", file=sys.stderr)
    return version_of(name) is not None
