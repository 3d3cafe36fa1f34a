"""A grid file: which runs, over which seeds, probed in which ways. Identical runs are run once.

    title    = "Capacity on three games"
    datasets = ["pong", "breakout", "freeway"]      # or ["paper-games"]
    methods  = ["st-dim", "dim-c+"]
    seeds    = [0, 1]
    preset   = "quick"

    [run]                                           # any setting of a run, or of the methods that have it
    max_steps = 150

    [probe]                                         # any setting of an evaluation, for all of them
    probe_steps = 6000

    [[evaluations]]                                 # every trained encoder is probed in each of these ways
    probe_input = "output"
    [[evaluations]]
    probe_input = "backbone"

    [[variants]]                                    # an extra column: a method with its own settings
    method  = "dim-c+"
    epsilon = [0.0, 5e-3]                           # a list makes one column per value; several lists are paired

`docs/grids.md` explains all keys.
"""

import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from manicap.algorithms import find_method
from manicap.algorithms.base import PresetName
from manicap.core.config import from_dict, to_dict
from manicap.core.errors import UserError, unknown_choice
from manicap.core.ranges import NonNegative, Range, Seeds, Threads, shown
from manicap.core.reading import read_toml_table
from manicap.domains.base import Domain, find_domain, loadable_domains
from manicap.domains.evaluation import EvaluationConfig
from manicap.domains.run_config import RunConfig, plain_config, typed_config
from manicap.jobs.checks import job_problems
from manicap.train.device import DeviceName, Precision

OWN_GRIDS = Path(__file__).parent.parent / "grids"
NOT_OVERRIDDEN = ("domain", "game", "dataset", "method", "seed", "settings")
"""Fields of a run that the grid's lists determine."""


@dataclass(frozen=True)
class GridExecution:
    """How the runs of a grid are executed. Only `threads`, `device` and `precision` affect the bits of a result."""

    threads: Threads | None = None
    """CPU threads per run; the cores are divided if omitted. Results depend on the count in their last bits."""
    gpus: Annotated[float, Range(0, 1024)] = 0.0
    """GPUs per run on Ray; 0.5 puts two runs on one GPU."""
    device: DeviceName = "auto"
    """Device; auto uses a GPU if there is one."""
    precision: Precision = "auto"
    """Precision; auto is bfloat16 on a GPU and float32 on a CPU."""
    checkpoint_seconds: NonNegative = 60.0
    """Seconds between checkpoints: the most that a lost worker costs."""
    retries: Annotated[int, Range(0, 1000)] = 1
    """How often a failed cell is retried before its error is recorded."""


@dataclass(frozen=True)
class GridFile:
    """The file as written."""

    datasets: tuple[str, ...]
    domain: str | None = None
    """What to learn from; if omitted, the domain that yields the samples of its methods."""
    methods: tuple[str, ...] = ()
    seeds: Seeds = (0,)
    preset: PresetName = "quick"
    title: str = ""
    note: str = ""
    """What a reader of the report should know."""
    hours: NonNegative | None = None
    """Stated duration on two cores."""
    baseline: str | None = None
    """Column to compare the others with; the first if omitted."""
    run: dict = field(default_factory=dict)
    probe: dict = field(default_factory=dict)
    evaluations: tuple[dict, ...] = ()
    variants: tuple[dict, ...] = ()
    execution: GridExecution = GridExecution()


@dataclass(frozen=True)
class Column:
    """A method with its settings: a column of the table."""

    label: str
    method: str
    overrides: Mapping[str, Any]
    sweep: str | None = None
    """`epsilon`, or `num_heads x units`: what varies across the columns of the same variant."""
    point: tuple[Any, ...] = ()
    """This column's values of what varies."""


@dataclass(frozen=True)
class Cell:
    """One training run and the ways its encoder is probed."""

    config: RunConfig
    evaluations: tuple[EvaluationConfig, ...]

    @property
    def name(self) -> str:
        """The directory of the run."""
        return self.config.run_name


@dataclass(frozen=True)
class Grid:
    name: str
    file: GridFile
    datasets: tuple[str, ...]
    columns: tuple[Column, ...]
    evaluations: Mapping[str, EvaluationConfig]
    places: Mapping[tuple[str, str, int], Cell]
    """Cells by (dataset, column label, seed); columns that ask for the same run share its cell."""

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Every run once, seed by seed, so that the first seed completes a whole table."""
        return tuple({cell.name: cell for cell in self.places.values()}.values())

    @property
    def title(self) -> str:
        return self.file.title or self.name

    @property
    def baseline(self) -> str:
        return self.file.baseline or self.columns[0].label

    @property
    def domain(self) -> Domain:
        """What its runs learn from."""
        return find_domain(next(iter(self.places.values())).config.domain)


def read_grid(path: Path) -> Grid:
    """Read the grid of a file, or an included one by name; raise one `UserError` with everything wrong in it."""
    found = OWN_GRIDS / f"{path}.toml" if str(path) in own_grids() and not path.exists() else path
    if not os.path.lexists(found) and not path.suffix:
        raise UserError(f"{unknown_choice('grid', str(path), own_grids())}; or give the path of a file")
    return build_grid(read_toml_table(found, "grid file"), found.stem, source=str(found))


def own_grids() -> list[str]:
    """Names of the grids included with the package: the paper's tables and figures, and small versions of them."""
    return sorted(path.stem for path in OWN_GRIDS.glob("*.toml"))


def build_grid(values: Mapping[str, Any], name: str, source: str = "grid") -> Grid:
    problems: list[str] = []
    file = _read_file(values, problems)
    columns = _columns(file, problems)
    name_of_domain = _domain(file, columns, problems)
    domain = find_domain(name_of_domain)
    datasets = _datasets(file, domain, problems)
    evaluations = _evaluations(file, domain, problems)
    _check_run_keys(file, columns, name_of_domain, problems)
    if file.baseline is not None and file.baseline not in {column.label for column in columns}:
        problems.append(str(unknown_choice("baseline", file.baseline, {column.label for column in columns})))
    if not columns:
        problems.append("methods or variants must name at least one method")
    places: dict[tuple[str, str, int], Cell] = {}
    if not problems:
        probed = tuple(evaluations.values())
        for seed in file.seeds:
            for dataset in datasets:
                for column in columns:
                    config = _config(file, domain, dataset, column, seed, problems)
                    if config is not None:
                        problems += [f"{column.label}: {problem}" for problem in job_problems(config, probed)]
                        places[dataset, column.label, seed] = Cell(config, probed)
    if problems:
        raise UserError(f"{source}: " + "; ".join(dict.fromkeys(problems)))
    return Grid(name, file, datasets, columns, evaluations, places)


def _read_file(values: Mapping[str, Any], problems: list[str]) -> GridFile:
    """The readable part of the file: a wrong key is recorded and left out, so that later checks see the rest."""
    known = {item.name for item in dataclasses.fields(GridFile)}
    sound: dict[str, Any] = {"datasets": ()}
    for key, value in values.items():
        if key not in known:
            problems.append(str(unknown_choice("key", key, known)))
            continue
        try:
            from_dict(GridFile, {"datasets": [], key: value}, source="")
            sound[key] = value
        except UserError as error:
            problems.append(str(error).removeprefix(": "))
    if "datasets" not in values:
        problems.append("datasets is required")
    file = from_dict(GridFile, sound)
    for key in ("datasets", "seeds"):
        if key in sound and not getattr(file, key) and key in values:
            problems.append(f"{key} must not be empty")
    return file


def _domain(file: GridFile, columns: Sequence[Column], problems: list[str]) -> str:
    """The file's domain, or one that yields the samples of all its methods."""
    by_kind: dict[str, list[str]] = {}
    for column in columns:
        by_kind.setdefault(find_method(column.method).kind, []).append(column.method)
    if len(by_kind) > 1:
        told = "; ".join(f"{', '.join(dict.fromkeys(names))} from {kind}" for kind, names in by_kind.items())
        problems.append(f"all methods of a grid must learn from the same kind of samples: {told}")
    kind = next(iter(by_kind), "frames")
    yielding = next(name for name, found in loadable_domains() if kind in found.kinds)
    if file.domain is None:
        return yielding
    try:
        found = find_domain(file.domain)
    except UserError as error:
        problems.append(str(error))
        return yielding
    if kind not in found.kinds:
        problems.append(f"{found.title} yield {' and '.join(found.kinds)}, not the {kind} that the methods learn from")
        return yielding
    return file.domain


def _datasets(file: GridFile, domain: Domain, problems: list[str]) -> tuple[str, ...]:
    found: list[str] = []
    known = domain.subject_lists()
    for name in file.datasets:
        if name in known:
            found += known[name]
            continue
        try:
            found.append(domain.find_subject(name))
        except UserError as error:
            lists = f", or the name of a list: {', '.join(known)}" if known else ""
            problems.append(f"{error}{lists}")
    return tuple(dict.fromkeys(found))


def _columns(file: GridFile, problems: list[str]) -> tuple[Column, ...]:
    found = []
    for method in file.methods:
        if _settings_names(method, problems) is not None:
            found.append(Column(method, method, {}))
    for number, variant in enumerate(file.variants):
        found += _variant_columns(variant, f"variants[{number}]", file.domain, problems)
    labels = [column.label for column in found]
    for label in dict.fromkeys(labels):
        if labels.count(label) > 1:
            problems.append(f"two columns are called {label!r}; give one a label")
    return tuple(found)


def _variant_columns(
    variant: Mapping[str, Any], place: str, domain: str | None, problems: list[str]
) -> Iterator[Column]:
    """One column per value of the variant's lists, or a single one."""
    overrides = {key: value for key, value in variant.items() if key not in ("method", "label")}
    method, label = variant.get("method"), variant.get("label")
    if not isinstance(method, str):
        problems.append(f"{place}.method is required")
        return
    settings = _settings_names(method, problems)
    if settings is None:
        return
    for key in overrides:
        if key not in {*settings, *_run_names(domain or _yielding(method), method)}:
            problems.append(str(unknown_choice("key", f"{place}.{key}", {f"{place}.{name}" for name in settings})))
    _require_text(label, f"{place}.label", problems)
    lists = {key: value for key, value in overrides.items() if isinstance(value, list)}
    empty = [key for key, value in lists.items() if not value]
    if empty:
        problems.append(f"{place}: {', '.join(empty)} must have at least one value")
        return
    lengths = {len(value) for value in lists.values()}
    if len(lengths) > 1:
        told = ", ".join(f"{key} has {len(value)}" for key, value in lists.items())
        problems.append(f"the lists of {place} are paired and must have the same length: {told}")
        return
    for index in range(lengths.pop() if lengths else 1):
        chosen = {key: value[index] if key in lists else value for key, value in overrides.items()}
        point = tuple(value[index] for value in lists.values())
        shown = {key: chosen[key] for key in lists} or chosen
        told = ", ".join(f"{key.replace('_', ' ')} {_short(value)}" for key, value in shown.items())
        name = f"{label or method} ({told})" if lists or label is None else str(label)
        yield Column(name, method, chosen, " x ".join(lists) or None, point)


def _evaluations(file: GridFile, domain: Domain, problems: list[str]) -> dict[str, EvaluationConfig]:
    """Evaluations by name: the name in the file, or one made of what differs from the preset."""
    plain = domain.preset_evaluation(file.preset)
    inherited = {key: file.run[key] for key in domain.shared_fields if key in file.run}
    found: dict[str, EvaluationConfig] = {}
    for number, values in enumerate(file.evaluations or ({},)):
        own = {key: value for key, value in values.items() if key != "name"}
        place = f"evaluations[{number}]" if file.evaluations else "probe"
        _require_text(values.get("name"), f"{place}.name", problems)
        try:
            values_of = {**to_dict(plain), **inherited, **file.probe, **own}
            config = from_dict(domain.evaluation_type, values_of, source=place)
        except UserError as error:
            problems.append(str(error))
            continue
        name = str(values.get("name") or ", ".join([config.probe_input, *_told(own)]))
        if name in found:
            problems.append(f"two evaluations are called {name!r}; give one a name")
        found[name] = config
    return found


def _require_text(value: Any, place: str, problems: list[str]) -> None:
    """A label or a name: text, or absent."""
    if value is not None and not isinstance(value, str):
        problems.append(f"{place} must be str, got {shown(value)}")


def _told(values: Mapping[str, Any]) -> list[str]:
    """The values that a name is made of; a number is preceded by its key."""
    others = [(key, value) for key, value in values.items() if key != "probe_input"]
    return [value if isinstance(value, str) else f"{key.replace('_', ' ')} {value}" for key, value in others]


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _check_run_keys(file: GridFile, columns: Sequence[Column], domain: str, problems: list[str]) -> None:
    """A setting under [run] must belong to runs, or to at least one of the grid's methods."""
    known: set[str] = set()
    for column in columns:
        known |= {*_run_names(domain, column.method), *(_settings_names(column.method, []) or ())}
    problems += [
        str(unknown_choice("key", f"run.{key}", {f"run.{name}" for name in known}))
        for key in file.run
        if columns and key not in known
    ]


def _config(
    file: GridFile, domain: Domain, dataset: str, column: Column, seed: int, problems: list[str]
) -> RunConfig | None:
    """The preset's config, with the changes of [run] and then of the column."""
    name = file.domain or domain.name
    preset = domain.preset(file.preset, dataset, column.method, {**file.run, **column.overrides})
    values = {**to_dict(preset), "seed": seed}
    settings = _settings_names(column.method, []) or frozenset()
    for key, value in [*file.run.items(), *column.overrides.items()]:
        if key in settings:
            values["settings"][key] = value
        elif key in _run_names(name, column.method):
            values[key] = value
    try:
        typed = from_dict(_config_type(name, column.method), values, source=column.label)
    except UserError as error:
        problems.append(str(error))
        return None
    return plain_config(typed)


@cache
def _config_type(domain: str, method: str) -> type[RunConfig]:
    return typed_config(domain, method)


def _yielding(method: str) -> str | None:
    """A domain that yields what a method learns from."""
    kind = find_method(method).kind
    return next((name for name, found in loadable_domains() if kind in found.kinds), None)


def _run_names(domain: str | None, method: str) -> frozenset[str]:
    """Fields of a run that a grid may set; empty if no domain yields what the method learns from."""
    if domain is None or find_method(method).kind not in find_domain(domain).kinds:
        return frozenset()
    return frozenset(item.name for item in dataclasses.fields(_config_type(domain, method))) - {*NOT_OVERRIDDEN}


def _settings_names(method: str, problems: list[str]) -> frozenset[str] | None:
    """Names of the method's own settings; None, with a problem recorded, for a method that does not exist."""
    try:
        return frozenset(item.name for item in dataclasses.fields(find_method(method).settings_type))
    except UserError as error:
        problems.append(str(error))
        return None
