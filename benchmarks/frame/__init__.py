"""What every benchmark has: options, the record of the machine, timing in turn, result lines."""
