"""The commands that measure a result again, from its configs: a preset and what differs from it."""

import shlex
from dataclasses import fields, is_dataclass
from typing import Any, get_args

from manicap.algorithms.base import PresetName
from manicap.core.registry import could_be_plugin
from manicap.domains.result import RunResult

PRESETS: tuple[PresetName, ...] = get_args(PresetName)


def again(result: RunResult, run_dir: str) -> tuple[tuple[str, str], ...]:
    """What each command does, and the command. One trains and probes, if both share what they must share."""
    config, evaluation = result.config, result.evaluation_config
    probe = ("Probe this run again", evaluate_command(result, run_dir))
    if all(getattr(config, name) == getattr(evaluation, name) for name in result.domain.shared_fields):
        return (("Train and probe again", run_command(result)), probe)
    return (("Train again", pretrain_command(result)), probe)


def run_command(result: RunResult) -> str:
    """`manicap run ...`, with the preset that leaves the fewest flags."""
    domain, config = result.domain, result.config
    beside = ["--ceiling"] if "supervised" in result.beside else []
    seeds = ["--seeds", str(config.seed)] if config.seed else []

    def words(preset: PresetName) -> list[str]:
        evaluation = _different(result.evaluation_config, domain.preset_evaluation(preset))
        return [*_training(result, preset, ("seed", *domain.shared_fields)), *seeds, *evaluation, *beside]

    return shlex.join(("manicap", "run", *min(map(words, PRESETS), key=len)))


def pretrain_command(result: RunResult) -> str:
    """`manicap pretrain ...`, likewise."""
    return shlex.join(("manicap", "pretrain", *min((_training(result, preset) for preset in PRESETS), key=len)))


def evaluate_command(result: RunResult, run_dir: str) -> str:
    """`manicap evaluate RUN ...`, with the plug-ins that the run uses, which the caller must name."""
    usual = result.domain.evaluation_type()
    named = [word for path in _plugins(result.config) for word in ("--plugin", path)]
    return shlex.join(("manicap", "evaluate", run_dir, *_different(result.evaluation_config, usual), *named))


def _plugins(config: Any) -> list[str]:
    """Import paths among the values of a config and of nested ones."""
    values = [getattr(config, field.name) for field in fields(config)]
    nested = [path for value in values if is_dataclass(value) for path in _plugins(value)]
    return [value for value in values if isinstance(value, str) and could_be_plugin(value)] + nested


def _training(result: RunResult, preset: PresetName, hidden: tuple[str, ...] = ()) -> list[str]:
    """What is trained: the subject, the method, the preset, and the flags that differ from it."""
    domain, config = result.domain, result.config
    subject = getattr(config, domain.subject_field)
    chosen = {name: getattr(config, name) for name in domain.shared_fields}
    usual = domain.preset(preset, subject, config.method, chosen)
    named = [f"--{domain.subject_field}", str(subject), "--method", config.method, "--preset", preset]
    return [*named, *_different(config, usual, ("domain", "method", domain.subject_field, *hidden))]


def _different(config: Any, usual: Any, hidden: tuple[str, ...] = ()) -> list[str]:
    """Flags of the fields that differ from the usual, also of nested configs, whose fields have flags of their own."""
    found: list[str] = []
    for field in fields(config):
        value, default = getattr(config, field.name), getattr(usual, field.name)
        if field.name in hidden or value == default:
            continue
        flag = field.name.replace("_", "-")
        if is_dataclass(value):
            found += _different(value, default)
        elif isinstance(value, bool):
            found.append(f"--{flag}" if value else f"--no-{flag}")
        elif isinstance(value, list | tuple):
            found += [f"--{flag}", *map(str, value)]
        else:
            found += [f"--{flag}", str(value)]
    return found
