"""The runtime: engine selection, threads, compiled code, vector operations, progress."""
