"""Text for the terminal. Names come from users and their files: nothing in them is ever markup."""

from collections.abc import Collection, Sequence

from rich.console import Console


def plain_console() -> Console:
    """Prints tables and lines as they are: no `[bold]`, no `:smile:`, no colours for numbers."""
    return Console(markup=False, emoji=False, highlight=False)


def in_columns(head: Sequence[str], rows: Sequence[Sequence[str]], numbers: Collection[str] = ()) -> str:
    """Aligned lines of plain text, one per row however narrow the terminal is; `numbers` are right-aligned."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = []
    for row in (head, *rows):
        cells = (
            cell.rjust(width) if name in numbers else cell.ljust(width)
            for name, cell, width in zip(head, row, widths, strict=True)
        )
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
