"""Seeds: all places where a k-mer, or its reverse complement, lies in a reference."""
