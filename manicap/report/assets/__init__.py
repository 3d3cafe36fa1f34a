"""The page's template, styles and script, as files."""

import re
from importlib.resources import files


def asset(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8").strip()


def fill(template: str, **parts: str) -> str:
    """Put a part in the place of each {{name}}, in one pass: a part which itself reads {{name}} stays as it is."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match.group(1)], template)
