"""From a text to its suffix array and FM-index."""
