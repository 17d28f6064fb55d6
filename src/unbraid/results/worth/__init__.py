"""What a fit is worth, as a user is told it: expected errors, intervals, and what they were computed from."""
