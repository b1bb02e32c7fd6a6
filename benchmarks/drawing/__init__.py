"""From result lines to what pages show: figures, their age, tables and pictures."""
