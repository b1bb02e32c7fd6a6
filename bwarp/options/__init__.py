"""The options of all tasks, each declared once.

A declaration defines the argument of a program with its help, the key of the configuration with its
rule, the row of the tables in config/README.md, and the values that library functions accept. This
is the lowest layer: it imports only errors, so that the workflow and `--help` start fast.
"""
