"""Looks at samples before a fit: what is odd about them, what neighbours tell, and what they leave open."""
