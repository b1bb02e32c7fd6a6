# Locate the workflow and the library, and check all user input before anything else.
import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path

import yaml

# Snakemake does not document how to ask for the storage, the command line, the executor, or where
# rules come from. Only this file, resources.smk, allmap_batches.smk and results.smk use attributes
# of `workflow` for these.

# Whether this workflow runs on its own, rather than as a module of another one.
IS_MAIN = workflow.modifier.is_main_snakefile()

# The storage of inputs and results, if they are not local files; fs is a folder.
STORAGE = workflow.storage_settings.default_storage_provider
STORED_IN = workflow.storage_settings.default_storage_prefix or ""

# The checkout with these rules; None if they are read from a repository, as with `github(...)`.
# Programs and library are then those of the installed bwarp.
HERE = workflow.current_basedir
CHECKOUT = Path(HERE).parents[2] if isinstance(HERE, os.PathLike) else None

MODULES = ("bwarp_configuration", "bwarp_pipes", "bwarp_sheet")


def of_checkout(path):
    """Return the path of a file of the checkout; from a repository, that of a local copy."""
    return CHECKOUT / path if CHECKOUT else Path(workflow.source_path(f"../../../{path}"))


def stop(message):
    """Print why nothing can run, and exit with the code of a usage error."""
    print(f"Nothing was run: {message}.", file=sys.stderr)
    sys.exit(2)


def check_installed_version():
    """Stop if no bwarp, or another version of it, is installed for rules from a repository."""
    text = of_checkout("bwarp/__init__.py").read_text()
    version = re.search(r'^__version__ = "(.+)"', text, re.MULTILINE)[1]
    install = f"type pip install 'bwarp[workflow]=={version}'"
    if not find_spec("bwarp"):
        stop(f"the rules are read from a repository, and bwarp is not installed: {install}")
    import bwarp

    if bwarp.__version__ != version:
        found = bwarp.__version__
        stop(f"the rules are those of bwarp {version}, and bwarp {found} is installed: {install}")


LIBRARY = [of_checkout(f"workflow/lib/{name}.py") for name in MODULES]
if CHECKOUT:
    sys.path.insert(0, str(CHECKOUT))
elif LIBRARY[0].suffix != ".py":
    stop("a module of bwarp cannot be git+file: use the path of a clone, or github(...)")
else:
    check_installed_version()
sys.path.insert(0, str(LIBRARY[0].parent))

from bwarp_configuration import (
    ConfigFile,
    Problem,
    config_file_problems,
    config_problems,
    in_reading_order,
    typed_values,
    with_defaults,
)
from bwarp_sheet import read_sheet, sheet_file_problems, sheet_problems

from bwarp.options.configuration import configuration_schema

# Files that the rules of demo.smk make; they need not exist to be named.
DEMO_GENOME = "resources/demo/demo.fa.gz"
DEMO_READS = ["resources/demo/reads_1.fq.gz", "resources/demo/reads_2.fq.gz"]


# Schemas of the configuration and of a row of the sample sheet. PyYAML's own parser is slow.
SCHEMA = configuration_schema()
SHEET_TEXT = of_checkout("workflow/schemas/samples.schema.yaml").read_text()
SHEET_SCHEMA = yaml.load(SHEET_TEXT, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def config_files():
    """Return the configuration files, later ones overriding earlier ones, then the command line."""
    typed = workflow.config_settings
    names = [name for name in workflow.configfiles if name not in typed.configfiles]
    files = [
        ConfigFile.parse(os.path.relpath(name), Path(name).read_text(encoding="utf-8"))
        for name in [*names, *typed.configfiles]
    ]
    return [*files, ConfigFile.of_values("--config", typed.config)]


def check_configuration():
    """Return all problems of the configuration and of the sample sheet."""
    # If this workflow is a module of another one, that one may make the input files.
    check_files = IS_MAIN and not STORAGE
    made = {DEMO_GENOME, *DEMO_READS}
    files = config_files()
    problems = config_problems(config, SCHEMA, files)
    if check_files:
        problems += config_file_problems(config, SCHEMA, files, made)
    sheet = config.get("samples")
    if isinstance(sheet, str) and os.path.isfile(sheet):
        rows, problems_of_shape = read_sheet(sheet, Path(sheet).read_bytes(), SHEET_SCHEMA)
        problems += problems_of_shape
        problems += sheet_problems(sheet, rows, SHEET_SCHEMA, unique=("sample", "unit"))
        if check_files:
            problems += sheet_file_problems(sheet, rows, SHEET_SCHEMA, made)
    return in_reading_order(problems)


def refuse(problems):
    """Print all problems of the user input, and exit with the code of a usage error."""
    there_are = f"there are {len(problems)} problems" if len(problems) > 1 else "there is a problem"
    print(f"Nothing was run: {there_are} in the configuration.", file=sys.stderr)
    for problem in problems:
        print(f"  {problem}", file=sys.stderr)
    print("config/README.md explains every key and column.", file=sys.stderr)
    sys.exit(2)


def seen_here(path):
    """Return the local path of a file that the user named; None in a storage other than fs."""
    if STORAGE == "fs":
        return os.path.join(STORED_IN, path)
    return "" if STORAGE else path


def section(name):
    """Return a section of the configuration that a target requires."""
    if name not in config:
        message = f"is missing: see config/examples/{name}.yaml"
        refuse([Problem("the configuration", None, name, message)])
    return config[name]


config.update(typed_values(config, SCHEMA, workflow.config_settings.config))
problems = check_configuration()
if problems:
    refuse(problems)
config.update(with_defaults(config, SCHEMA))
