"""Functions, programs and constants agree with the declarations of options."""

import inspect
import subprocess
import sys

import pytest

import bwarp
from bwarp.alignment.gatk_cpu import GATK_PARAMETERS
from bwarp.alignment.scoring import MODES
from bwarp.mems.query_text import STRANDS
from bwarp.offtargets import site_tables as site_text
from bwarp.options.aligning import PAIRS, SEARCH
from bwarp.options.common import BACKEND, THREADS
from bwarp.options.configuration import TASKS
from bwarp.options.finding import GUIDES, MEMS, OFFTARGETS, SCAN, SEEDS
from bwarp.options.mapping import ALLMAP, INDEX, MAP
from bwarp.options.option import CONFIGURATION, PROGRAM

#: Functions of the library, the task of each, and their parameters for data.
FUNCTIONS = {
    "Index.build": (bwarp.Index.build, INDEX, {"reference"}),
    "Mapper": (bwarp.Mapper.__init__, MAP, {"self"}),
    "find_loci": (bwarp.find_loci, ALLMAP, {"reads", "mates"}),
    "find_seeds": (bwarp.find_seeds, SEEDS, set()),
    "find_offtargets": (bwarp.find_offtargets, OFFTARGETS, set()),
    "design_guides": (bwarp.design_guides, GUIDES, {"bed"}),
    "pair_nickases": (bwarp.pair_nickases, GUIDES, {"guides"}),
    "find_mems": (bwarp.find_mems, MEMS, set()),
    "scan": (bwarp.scan, SCAN, set()),
    "align_pairs": (bwarp.align_pairs, PAIRS, set()),
    "search": (bwarp.search, SEARCH, set()),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_the_parameters_and_defaults_of_its_task(name):
    function, task, data = FUNCTIONS[name]
    declared = {option.name: option for option in (*task.options, BACKEND, THREADS)}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in data:
            continue
        option = declared[parameter.name]
        has_default = parameter.default is not inspect.Parameter.empty
        assert has_default != bool(option.required or option.name == "index"), parameter.name
        if has_default:
            # 0 == False
            assert repr(parameter.default) == repr(option.default), parameter.name


def test_choices_are_those_that_exist():
    assert set(PAIRS["mode"].value.words) == {*MODES, "gatk"}
    assert PAIRS["parameters"].value.words == tuple(GATK_PARAMETERS)
    assert MEMS["strands"].value.words == tuple(STRANDS)
    assert OFFTARGETS["format"].value.words == ("auto", *site_text._LAYOUTS)


@pytest.mark.parametrize("name", TASKS)
def test_a_name_is_declared_once(name):
    options = TASKS[name].options
    for left_out in (PROGRAM, CONFIGURATION):
        flags = [flag for one in options if one.only != left_out for flag in one.flags]
        assert len(flags) == len(set(flags))


def test_declarations_import_nothing_heavy(checkout):
    code = "import sys; import bwarp.options.configuration; print(*sys.modules)"
    command = [sys.executable, "-S", "-c", code]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=True)
    assert "bwarp.options.configuration" in done.stdout.split()
