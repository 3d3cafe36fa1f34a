"""The page's template, styles and script, as files."""

import base64
import hashlib
import re
from importlib.resources import files


def asset(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8").strip()


def fill(template: str, **parts: str) -> str:
    """Replace each {{name}} by its part, in one pass: a part that itself contains {{name}} is left unchanged."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match.group(1)], template)


def content_policy(script: str) -> str:
    """What a browser may do with a page: run this one script and draw. No network, no forms."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; style-src 'unsafe-inline';"
        f" script-src 'sha256-{digest}'"
    )
