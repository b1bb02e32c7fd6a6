"""Reports on results: tables, plots and the sections of a MultiQC report."""
