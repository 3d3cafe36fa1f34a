"""Grids of whole jobs (collect, pretrain and probe) on one machine or many, beside the published numbers."""
