"""Compiling what programs need, side by side, when they are first used on a machine."""
