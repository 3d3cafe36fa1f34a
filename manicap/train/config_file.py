"""`config.toml` of a run: the readable file that defines it."""

from pathlib import Path

from manicap.core.config import to_dict
from manicap.core.errors import UserError
from manicap.core.reading import read_toml_table
from manicap.domains.run_config import RunConfig, config_from_dict
from manicap.train.record import describe_differences, is_begun, read_record


def read_run_config(run_dir: Path) -> RunConfig:
    """The config of a run; an edited file is refused."""
    path = run_dir / "config.toml"
    config = config_from_dict(read_toml_table(path, "config file", remedy=f"is {run_dir} a run?"), source=str(path))
    if is_begun(run_dir):
        # Settings that came later were at their defaults, which change nothing, when the run was started.
        begun = config_from_dict(read_record(run_dir).config, source=str(run_dir / "run.json"))
        changes = describe_differences(to_dict(begun), to_dict(config), "config")
        if changes:
            raise UserError(f"{path} has changed since the run started: {'; '.join(changes)}; undo the change")
    return config
