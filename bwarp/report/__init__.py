"""What people read about results: tables, plots and the sections of a MultiQC report."""
