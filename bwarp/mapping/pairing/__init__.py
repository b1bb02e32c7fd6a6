"""From scored hits to pairs, primary alignments and mapping qualities."""
