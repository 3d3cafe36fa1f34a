"""Time and size of a report of Table 1: 570 runs with made-up scores, 100 validations each.

.venv/bin/python benchmarks/report.py
"""

import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from manicap.bench.grid import read_grid  # noqa: E402
from manicap.report.grid_report import write_grid_report  # noqa: E402
from tests.report.synthetic_runs import write_synthetic_run  # noqa: E402

LIMIT_SECONDS, LIMIT_BYTES = 20, 5_000_000


def main() -> None:
    grid = read_grid(Path("table1"))
    with tempfile.TemporaryDirectory() as scratch:
        runs_dir, out = Path(scratch) / "runs", Path(scratch) / "report"
        for cell in grid.cells:
            write_synthetic_run(runs_dir, cell)
        start = time.perf_counter()
        page = write_grid_report(grid, runs_dir, out)
        seconds, size = time.perf_counter() - start, page.stat().st_size
        print(f"{len(grid.cells)} runs: {seconds:.1f} s (limit {LIMIT_SECONDS}), {size / 1e6:.2f} MB (limit 5)")
        for path in sorted(out.rglob("*")):
            if path.is_file():
                print(f"  {path.relative_to(out)}: {path.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
