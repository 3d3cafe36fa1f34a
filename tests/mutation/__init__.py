"""Mutation of the package's mathematics: does a test fail when a sign, a frame or a mean is changed? `make mutants`."""
