"""The contenders: each file has one CONTENDER."""
