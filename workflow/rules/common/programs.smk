# How rules call the programs of bwarp: commands, flags and environment.
import os
import shlex
import sys
from pathlib import Path

import bwarp
from bwarp.cli.subcommands import SUBCOMMANDS
from bwarp.runtime.source_digest import program_digest

# Programs run with the Python that runs Snakemake, or with that of an active conda environment, and
# always with the library of this checkout, if there is one.
os.environ.update(PATH=os.pathsep.join([str(Path(sys.executable).parent), *os.get_exec_path()]))
LIBRARY_PATH = f"export PYTHONPATH={shlex.quote(str(CHECKOUT))}; " if CHECKOUT else ""
shell.prefix(f"set -euo pipefail; {LIBRARY_PATH}")

# For conda, relative to the folder of the rules. Environments do not contain bwarp: without a
# checkout, all jobs run in the environment of Snakemake.
CPU_ENVIRONMENT, GPU_ENVIRONMENT, REPORT_ENVIRONMENT = (
    f"../../envs/{name}.yaml" if CHECKOUT else None for name in ("cpu", "gpu", "report")
)

# Subcommands, by the names of their files in scripts/.
PROGRAMS = {f"{command.program}.py": (name, command) for name, command in SUBCOMMANDS.items()}


def relative(path):
    """Return the path of a file of the checkout relative to the folder in which snakemake was
    started.
    """
    return os.path.relpath(of_checkout(path))


def program(name):
    """Return the words after `python` that run scripts/NAME of this library, wherever it is."""
    # -P: not a folder bwarp in the working directory.
    return ["-P", "-m", "bwarp", PROGRAMS[name][0]]


def code(name):
    """Return a digest of a program and the library that it imports; edited code reruns its rules."""
    library = Path(bwarp.__file__).parent
    _, command = PROGRAMS[name]
    source = library.joinpath("cli", *command.module.split("."))
    return program_digest(source.with_suffix(".py"), library)


def flags(settings, *left_out):
    """Return command-line flags for settings; auto and whole queries are program defaults."""
    words = []
    for key, value in settings.items():
        if key in left_out:
            continue
        flag = f"-{key}" if len(key) == 1 else f"--{key.replace('_', '-')}"
        if value is True:
            words.append(flag)
        elif value is not False and value not in ("auto", "whole"):
            words += [flag, str(value)]
    return words


def flags_for(settings, *keys):
    """Return command-line flags for some keys of settings, if present."""
    return flags({key: settings[key] for key in keys if key in settings})


def options_of(name, *files):
    """Return a function for params: the flags for the keys of a section, except its input files."""

    def options(wildcards):
        return flags(section(name), *files)

    return options


def seed_options(wildcards):
    """The flags for the section seeds; whole queries have no step.

    `locate` and `algorithm` are resources, as the engine is: none of them changes the result.
    """
    settings = section("seeds")
    left_out = ["step"] if settings["k"] == "whole" else []
    others = ("queries", "parts", "chunk_bases", "locate", "algorithm")
    return flags(settings, *others, *left_out)


def algorithm_of(name):
    """Return a function for resources: the algorithm of a section, with no effect on results."""

    def algorithm(wildcards):
        return section(name)["algorithm"]

    return algorithm


def flags_of_files(*keys):
    """Return a function for params: the flags of input files that may be missing.

    Apart from the other flags: what depends on inputs is not compared with that of an earlier run.
    """

    def words(wildcards, input):
        return [word for key in keys for path in input[key] for word in (f"--{key}", path)]

    return words


def report_flags(wildcards):
    """The flags for the report on off-targets."""
    return flags_for(section("offtargets"), "report_sites", "report_link")


def environment(wildcards, params):
    """Return the conda environment: with CUDA if a job has, or requires, a GPU."""
    return GPU_ENVIRONMENT if params.gpus or config["backend"] == "cuda" else CPU_ENVIRONMENT
