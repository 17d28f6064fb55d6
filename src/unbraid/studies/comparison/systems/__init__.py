"""Systems that methods are compared on: every file of this folder has a list SYSTEMS, and is found by itself."""
