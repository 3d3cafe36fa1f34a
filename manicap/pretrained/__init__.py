"""Trained encoders: their files, the module that they are loaded as, its card, and hubs."""
