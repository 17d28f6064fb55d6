"""Pictures of what inputs and branches do to the outputs, and how much."""
