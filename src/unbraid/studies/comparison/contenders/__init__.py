"""Methods that take part in the comparison: every file of this folder has a list CONTENDERS, and is found by itself."""
