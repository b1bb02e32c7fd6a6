"""bwarp from Python: sequences in memory or in files in, data frames out.

A file a capability, apart from the capabilities, which do without pandas: each reads what it is
given, calls the functions that the program of the same task calls, and makes a frame of what they
return. `bwarp` imports a file when one of its names is first used.
"""
