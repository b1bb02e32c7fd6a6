"""What `bwarp` defines, for type checkers and editors."""

from bwarp.api.allmap import find_loci as find_loci
from bwarp.api.guide_design import design_guides as design_guides
from bwarp.api.guide_design import pair_nickases as pair_nickases
from bwarp.api.guides import list_guides as list_guides
from bwarp.api.index import Index as Index
from bwarp.api.mapper import Mapper as Mapper
from bwarp.api.mems import find_mems as find_mems
from bwarp.api.offtargets import find_offtargets as find_offtargets
from bwarp.api.pairs import align_pairs as align_pairs
from bwarp.api.primers import find_products as find_products
from bwarp.api.scan import scan as scan
from bwarp.api.search import search as search
from bwarp.api.seeds import find_seeds as find_seeds
from bwarp.api.tables import read_table as read_table
from bwarp.errors import InputError as InputError
from bwarp.errors import UsageError as UsageError

__version__: str
