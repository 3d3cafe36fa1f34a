"""Whole jobs and grids of them: collect, pretrain and probe, on one machine or many; the published numbers beside."""
