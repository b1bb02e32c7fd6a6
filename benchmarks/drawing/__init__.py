"""From result lines to the content of pages: figures, their age, tables and pictures."""
