"""The command line: the command `bwarp`, and the frame in which every program runs."""
