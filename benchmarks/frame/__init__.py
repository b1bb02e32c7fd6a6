"""Common parts of benchmarks: options, the machine's description, timing, result lines."""
