"""Files: sequences read, outputs that appear whole, chunk files between programs, BAM."""
