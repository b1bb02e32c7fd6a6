"""The machine that runs it: the engine, threads, compiled code, vector operations."""
