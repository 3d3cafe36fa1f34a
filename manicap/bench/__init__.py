"""Whole jobs: collect, pretrain and probe as one, with the published numbers beside. Grids will live here."""
