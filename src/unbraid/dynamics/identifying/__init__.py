"""The stages of an identification: linear models, starts, bases, sizes, and the way to the user's units."""
