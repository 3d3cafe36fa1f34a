"""Default locations of data, runs and reports."""

import os
from pathlib import Path

DATA_DIR = Path(os.environ.get("MANICAP_DATA", "data"))
"""Frame stores. Set MANICAP_DATA to share them between projects."""
RUNS_DIR = Path(os.environ.get("MANICAP_RUNS", "runs"))
"""Runs. Set MANICAP_RUNS to put them elsewhere."""
REPORTS_DIR = Path(os.environ.get("MANICAP_REPORTS", "reports"))
"""Reports of grids."""
