"""A grid's report, written from result files: the same results give the same bytes.

reports/<name>/report.html         one page with everything
reports/<name>/tables.md, .tex     tables in the paper's layout
reports/<name>/table.csv, runs.csv the numbers behind them
reports/<name>/figures/*.svg, .pdf
"""

import os
from collections.abc import Callable
from pathlib import Path

from manicap.bench.grid import Grid
from manicap.bench.scores import gather_scores
from manicap.core.files import atomic_write
from manicap.report.grid_figures import draw_all
from manicap.report.grid_page import build_grid_page, caveat_line, summary_line
from manicap.report.grid_summary import summaries
from manicap.report.grid_tables import latex, markdown, runs_csv, table_csv


def write_grid_report(grid: Grid, runs_dir: Path, out: Path, say: Callable[[str], None] = lambda line: None) -> Path:
    """Write the report into `out` and return the page's path. `say` receives a line for each curve that is left out."""
    found = gather_scores(grid, runs_dir)
    for name, reason in found.lost_curves.items():
        say(f"the curve of {name} is left out: {reason}")
    parts = summaries(grid, found)
    drawings = draw_all(parts, found)
    texts = {
        "report.html": build_grid_page(grid, found, parts, drawings, page_links(grid, runs_dir, out)),
        "tables.md": markdown(grid.title, f"{summary_line(grid, found)} {caveat_line(grid, found)}".strip(), parts),
        "tables.tex": latex(grid.title, parts),
        "table.csv": table_csv(parts),
        "runs.csv": runs_csv(found),
    }
    files = {name: text.encode() for name, text in texts.items()}
    for drawing in drawings:
        files[f"figures/{drawing.name}.svg"] = drawing.svg.encode()
        files[f"figures/{drawing.name}.pdf"] = drawing.pdf
    for name, content in files.items():
        atomic_write(out / name, content)
    return out / "report.html"


def page_links(grid: Grid, runs_dir: Path, out: Path) -> dict[str, str]:
    """Run names mapped to their pages, relative to the report, so that both can be moved together."""
    pages = {cell.name: runs_dir / cell.name / "report.html" for cell in grid.cells}
    return {name: os.path.relpath(path, out) for name, path in pages.items() if path.is_file()}
