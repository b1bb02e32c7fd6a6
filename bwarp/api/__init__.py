"""The Python interface: functions that take sequences in memory or in files and return data frames.

Each file wraps one program: it reads its arguments, calls the functions that the program calls, and
returns their results as a data frame. Only this package needs pandas. `bwarp` imports a file when
one of its names is first used.
"""
