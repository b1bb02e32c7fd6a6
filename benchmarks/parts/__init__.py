"""Parts of the larger programs: data, checks and measurements."""
