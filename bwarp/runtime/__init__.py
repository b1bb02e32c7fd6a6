"""The runtime: choice of the engine, threads, compiled code, vector operations, progress."""
