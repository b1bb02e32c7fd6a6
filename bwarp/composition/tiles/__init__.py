"""The scan window by window, tile by tile."""
