"""The command line: the command `bwarp`, and the frame that every program runs in."""
