"""Work that is kept in a file: the journal of a fit, and how what it holds becomes arrays and JSON."""
