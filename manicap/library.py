"""The functions that people import: `manicap.evaluate`, `manicap.pretrain`, `manicap.run`, ..."""

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from manicap.algorithms import METHODS, find_method
from manicap.algorithms.base import PresetName
from manicap.atari.annotations import annotations, sets_with
from manicap.atari.games import GAMES, Game, find_game
from manicap.atari.integrity import open_store as open_game_store
from manicap.atari.store import Store, StoreConfig
from manicap.core.config import checked, from_dict, to_dict
from manicap.core.errors import UserError, unknown_choice
from manicap.core.paths import DATA_DIR, RUNS_DIR
from manicap.core.ranges import PlaySteps, Seed, Seeds, Threads, Width, shown
from manicap.core.registry import allow_plugins, could_be_plugin
from manicap.core.remote import local_directory
from manicap.diagnostics.runs import RunDiagnosis
from manicap.diagnostics.training import measure_batch
from manicap.domains.atari.stores import collected
from manicap.domains.base import domain_of_field, find_domain
from manicap.domains.evaluation import Evaluation
from manicap.domains.images.config import ImageConfig
from manicap.domains.images.evaluation import evaluate_any, open_bench
from manicap.domains.images.evaluation_config import ImageEvaluationConfig
from manicap.domains.result import RunResult
from manicap.domains.run_config import RunConfig, config_from_dict
from manicap.environments.config import as_written
from manicap.environments.integrity import open_environment_store
from manicap.environments.inventory import is_environment_store
from manicap.environments.naming import importable
from manicap.environments.store import EnvironmentStore
from manicap.jobs.comparison import compare_runs, evaluation_of
from manicap.jobs.diagnosis import diagnose_run
from manicap.jobs.run import run_job
from manicap.play.protocol import find_protocol
from manicap.play.store import PlayStore
from manicap.play.views import Side, Stack, View, usual_view
from manicap.probing.encoders import Encoder, FrameEncoder, InputKind
from manicap.probing.features import require_fitting
from manicap.probing.pixels import PIXELS
from manicap.probing.play_bench import Extraction, PlayBench
from manicap.probing.probes import WITH_PIXELS, ProbeBuilder, find_probe
from manicap.report.pages import write_page
from manicap.statistics.comparison import Comparison
from manicap.train.finished import FinishedRun
from manicap.train.loop import pretrain as train_run
from manicap.train.setup import Execution

Floors = Iterable[str] | Mapping[str, "str | Encoder | FrameEncoder | Evaluation"]


@checked
def evaluate(
    encoder: Encoder,
    game: str | None = None,
    *,
    dataset: str | None = None,
    bench: PlayBench | PlayStore | None = None,
    probe: str | ProbeBuilder | None = None,
    protocol: str | None = None,
    annotation_set: str | None = None,
    steps: PlaySteps = 50_000,
    seed: Seed = 0,
    width: Width | None = None,
    input: InputKind = "uint8",
    colour: bool | None = None,
    stack: Stack = 1,
    size: tuple[Side, Side] | None = None,
    floors: Floors | None = None,
    cache_dir: Path | str | None = None,
    data_dir: Path | str = DATA_DIR,
    quiet: bool = False,
) -> Evaluation:
    """Probe a frozen encoder on a game, an environment or images, and return its scores with all they depend on.

        evaluation = manicap.evaluate(my_encoder, game="pong")       # uint8 frames [B, 1, 210, 160] -> features [B, F]
        manicap.evaluate(my_encoder, dataset="cifar10", probe="knn")  # uint8 images [B, 3, 32, 32] -> features [B, F]
        manicap.evaluate(my_encoder, bench=manicap.record("CartPole-v1", frame_size=(64, 64)))  # [B, 3, 64, 64]
        print(evaluation)

    Args:
        encoder: An `nn.Module` in eval mode, or any function of NumPy arrays; wrap it in
            `manicap.probing.FrameEncoder` to specify its input format.
        game: Game, under any of its usual names.
        dataset: cifar10, stl10, or the path of a folder with train/CLASS/*.png and test/CLASS/*.png.
        bench: A store of your own, as `manicap.record`, `manicap.collect` and `manicap.open_store` return it; or a
            `manicap.probing.PlayBench(store, protocol="reference")`, which has its own protocol, annotation set and
            seed.
        probe: On games and environments `ridge` (the default: converged, by number of labels), `discriminant`
            (converged, exact values), `linear` (the 2019 code's), `logistic`, `knn` or a probe-building function; on
            images `linear` (the default) or `knn`.
        protocol: On games `fixed`, or `reference` for the 2019 code's behaviour; on environments `plain`, on images
            `clean`.
        annotation_set: On games `corrected` (the default), `ari-2019` or `ari-2020`; on environments `recorded` (the
            default) or `play`.
        steps: Steps of play to probe on; collected into `data_dir` if not there yet.
        seed: Random seed of the splits, the probe and the projection.
        width: Project the features to this many dimensions by a seeded random orthogonal map; not for images.
        input: Frames as `uint8`, `float` (in [0, 1]) or `normalized` (from -1 to 1).
        colour: Show the encoder red, green and blue, or gray; by default games are gray, environments as recorded. Not
            for images, like the next two.
        stack: Number of the life's last frames that the encoder sees, oldest first, as channels.
        size: Height and width to shrink frames to, by area. Most agents see `stack=4, size=(84, 84)`.
        floors: What to compare with: names (`majority`; on games also `pixels`), or a dict from a name to one of these,
            to another encoder, which is probed in the same way, or to an `Evaluation`. By default all names.
        cache_dir: Where to cache features; they are not cached if omitted.
        data_dir: Where stores and datasets are kept.
        quiet: Show no progress.
    """
    if floors is None:
        with_pixels = dataset is None and probe in (None, *WITH_PIXELS)
        floors = ("majority", "pixels") if with_pixels else ("majority",)
    probe = probe or ("ridge" if dataset is None else "linear")
    named = {name: _frozen(floor, input) for name, floor in _name_floors(floors, dataset is None).items()}
    frozen = _frozen(encoder, input)
    if not isinstance(frozen, FrameEncoder):
        raise UserError(f"the encoder must be a function from frames to features, got {type(encoder).__name__}")
    allow_plugins([probe] if isinstance(probe, str) else [])
    if dataset is not None:
        if game is not None or bench is not None:
            raise UserError("give only one of game, bench and dataset")
        if width is not None:
            raise UserError("width is for games only: features of images are not projected")
        if colour is not None or stack != 1 or size is not None:
            raise UserError("colour, stack and size are for games only: images are shown as they are")
        return _on_images(frozen, dataset, probe, protocol or "clean", seed, named, local_directory(data_dir), quiet)
    entry = None if game is None else find_game(game)
    if bench is None:
        if entry is None:
            raise UserError("name what to probe on: game='pong', dataset='cifar10', or bench=a store")
        # Report mistakes before minutes of play.
        rules, view = find_protocol(protocol or "fixed"), View(bool(colour), stack, size)
        annotations(entry, annotation_set or "corrected")
        if isinstance(probe, str):
            find_probe(probe, steps)
        for each in (frozen, *named.values()):
            if isinstance(each, FrameEncoder):
                require_fitting(each, view)
        store = collected(StoreConfig(entry.name, steps, 0, "probe"), local_directory(data_dir), quiet=quiet)
        bench = PlayBench(store, rules.name, annotation_set, seed, view)
    else:
        if not isinstance(bench, PlayBench):
            bench = PlayBench(bench, protocol, annotation_set, seed, usual_view(bench, colour, stack, size))
        _require_same_bench(bench, entry, protocol, {"annotation_set": annotation_set, "steps": steps, "seed": seed})
        view = replace(bench.view, colour=bench.view.colour if colour is None else colour, stack=stack, size=size)
        if (colour, stack, size) != (None, 1, None) and view != bench.view:
            raise UserError(f"the bench shows frames as {bench.view}, not {view}: set it when creating the bench")
    extraction = Extraction(None if cache_dir is None else Path(cache_dir), width=width, quiet=quiet)
    return bench.evaluate(frozen, probe, floors=named, extraction=extraction)


def _require_same_bench(bench: PlayBench, game: Game | None, protocol: str | None, asked: Mapping[str, Any]) -> None:
    """A bench is already split and labelled: other arguments must agree with it."""
    store = bench.store
    if game is not None and game.name != store.subject:
        raise UserError(f"{store.path} is a store of {store.subject}, not of {game.name}")
    own = {"annotation_set": bench.annotation_set, "steps": len(store), "seed": bench.seed}
    chosen = {
        key: value for key, value in asked.items() if value != inspect.signature(evaluate).parameters[key].default
    }
    if protocol is not None:
        own["protocol"], chosen["protocol"] = bench.protocol.name, protocol
    for key, value in chosen.items():
        if value != own[key]:
            raise UserError(f"the bench has {key} {own[key]}, not {value}: set it when creating the bench")


def _on_images(
    encoder: FrameEncoder,
    dataset: str,
    probe: str | ProbeBuilder,
    protocol: str,
    seed: int,
    floors: Mapping[str, Any],
    data_dir: Path,
    quiet: bool,
) -> Evaluation:
    config = replace(ImageConfig(dataset=dataset), seed=seed)
    asked = from_dict(ImageEvaluationConfig, {"probe": probe, "protocol": protocol}, source="evaluate")
    encoders = {name: floor for name, floor in floors.items() if isinstance(floor, FrameEncoder)}
    bench = open_bench(config, asked, data_dir, quiet)
    few = replace(bench.neighbors, k=min(bench.neighbors.k, len(bench.train)))
    found = evaluate_any(replace(bench, neighbors=few), encoder, encoders)
    for name, floor in floors.items():
        if isinstance(floor, Evaluation):
            found.add_floor(name, floor)
    return found


def _frozen(encoder: Any, input: InputKind) -> Any:
    if isinstance(encoder, FrameEncoder | Evaluation | str):
        return encoder
    return FrameEncoder(encoder, input)


def _name_floors(floors: Floors, on_games: bool) -> dict[str, Any]:
    if isinstance(floors, str):
        floors = (floors,)
    named: dict[str, Any] = dict(floors) if isinstance(floors, Mapping) else {name: name for name in floors}
    known = ("majority", PIXELS) if on_games else ("majority",)
    for floor in named.values():
        if isinstance(floor, str) and floor not in known:
            raise UserError(
                f"unknown floor {floor!r}; floors with a name are {' and '.join(map(repr, known))}; pass an encoder as"
                " floors={'untrained': encoder}"
            )
    return named


def pretrain(
    learn: str | EnvironmentStore | None = None,
    /,
    *,
    method: str | None = None,
    preset: PresetName = "quick",
    domain: str | None = None,
    name: str | None = None,
    runs_dir: Path | str = RUNS_DIR,
    data_dir: Path | str = DATA_DIR,
    execution: Execution = Execution(),  # noqa: B008 - frozen
    **settings: Any,
) -> Path:
    """Train an encoder without labels and return the directory of the run. Call again to resume an interrupted run.

        run = manicap.pretrain("dim-c+", game="pong", preset="quick", max_steps=200)
        encoder = manicap.load(run)

    Args:
        learn: A method, or a store to learn from, as `manicap.record` returns it.
        method: Name of the method, see `manicap.methods()`; or `package.module:Name`.
        preset: quick (minutes on two cores), standard or paper.
        domain: What to learn from; implied by `game=`, `env=` and `dataset=`.
        name: Directory of the run under `runs_dir`; derived from the config if omitted.
        runs_dir: Where runs are kept.
        data_dir: Where stores and datasets are kept.
        execution: Device, threads, checkpoints: `manicap.Execution(threads=2, quiet=True)`.
        settings: The subject (`game="pong"`, `env="CartPole-v1"`, `dataset="cifar10"`), and any other field of the
            config or of the method's settings: `seed=1`, `batch_size=128`, `units=256`.
    """
    config = build_config(*_chosen(learn, method, settings), preset, domain)
    run_dir = Path(runs_dir) / (name or config.run_name)
    return train_run(config, run_dir, execution, local_directory(data_dir), observe=measure_batch)


def run(
    learn: str | EnvironmentStore | None = None,
    /,
    *,
    method: str | None = None,
    preset: PresetName = "quick",
    domain: str | None = None,
    seeds: Seeds = (0,),
    runs_dir: Path | str = RUNS_DIR,
    data_dir: Path | str = DATA_DIR,
    execution: Execution = Execution(),  # noqa: B008 - frozen
    evaluation: Mapping[str, Any] | None = None,
    **settings: Any,
) -> list[RunResult]:
    """Run the whole job: prepare, train, probe and write a page, for every seed.

        [result] = manicap.run("dim-c+", game="pong")
        print(result.evaluation)
        store = manicap.record("MiniGrid-DoorKey-8x8-v0", steps=20_000, frame_size=(64, 64))
        manicap.run(store, method="dim-c+")

    Args:
        learn: A method, or a store to learn from, as `manicap.record` returns it.
        method: Name of the method, see `manicap.methods()`; or `package.module:Name`.
        preset: quick (minutes on two cores), standard or paper.
        domain: What to learn from; implied by `game=`, `env=` and `dataset=`.
        seeds: One run each.
        runs_dir: Where runs are kept.
        data_dir: Where stores and datasets are kept.
        execution: Device, threads, checkpoints.
        evaluation: Changes to the preset's way of probing: `{"probe": "knn", "probe_steps": 12_000}`.
        settings: The subject, and any other field of the config or of the method's settings, as in `pretrain`.
    """
    config = build_config(*_chosen(learn, method, settings), preset, domain)
    allow_plugins(_texts(*(evaluation or {}).values()))
    found = find_domain(config.domain)
    shared = {key: getattr(config, key) for key in found.shared_fields}
    values = {**to_dict(found.preset_evaluation(preset)), **shared, **(evaluation or {})}
    probed = from_dict(found.evaluation_type, values, source="evaluation")
    places = (Path(runs_dir), local_directory(data_dir))
    dirs = run_job(config, probed, seeds, execution, *places, options=found.options_type(), show=write_page)
    return [RunResult.read(path / "result.json") for path in dirs]


def compare(
    *runs: Path | str,
    metric: str | None = None,
    baseline: str | None = None,
    allow_mismatch: bool = False,
    data_dir: Path | str = DATA_DIR,
    threads: Threads | None = None,
    quiet: bool = False,
    **evaluation: Any,
) -> Comparison:
    """Compare finished runs, probed in the same way: means with bootstrap intervals, and a paired test.

        print(manicap.compare(*sorted(Path("runs").glob("pong-*")), probe_input="backbone"))

    Args:
        runs: Directories of the runs.
        metric: What to compare (labels_saved, r2, f1, accuracy); if omitted, the first metric that the runs' probe has.
        baseline: Method to pair the others with; the best if omitted.
        allow_mismatch: Compare runs that cannot be ranked.
        data_dir: Where stores and datasets are kept.
        threads: CPU threads; OMP_NUM_THREADS or all cores if omitted.
        quiet: Show no progress.
        evaluation: Changes to the way the runs were probed: `probe="knn"`.
    """
    for run in runs:
        if not isinstance(run, Path | str):
            raise UserError(f"compare takes the directory of each run, as in compare('a', 'b'), got {shown(run)}")
    dirs = [Path(run) for run in runs]
    allow_plugins(_texts(*evaluation.values()))
    asked = evaluation_of(dirs, evaluation)
    probed = from_dict(type(asked), {**to_dict(asked), **evaluation}, source="compare")
    return compare_runs(dirs, probed, metric, baseline, allow_mismatch, local_directory(data_dir), threads, quiet)


def diagnose(
    run: Path | str,
    *,
    data_dir: Path | str = DATA_DIR,
    threads: Threads | None = None,
    quiet: bool = False,
    **config: Any,
) -> RunDiagnosis:
    """Measure rank, spread, heads and manifold capacity of a finished run, and look for signs of collapse.

        found = manicap.diagnose(run)
        found.measures["effective_rank"], found.alarms

    Args:
        run: Directory of the run.
        data_dir: Where stores and datasets are kept.
        threads: CPU threads; OMP_NUM_THREADS or all cores if omitted.
        quiet: Show no progress.
        config: What to measure on: `probe_steps=12_000` for games, `images=2_000` for images.
    """
    domain = find_domain(FinishedRun(Path(run)).config.domain)
    asked: Any = from_dict(domain.diagnosis_type, config, source="diagnose")
    return diagnose_run(Path(run), asked, local_directory(data_dir), threads, quiet)


def open_run(run: Path | str) -> FinishedRun:
    """Open a finished run: its config, its encoder before and after training, how long it was trained.

        run = manicap.open_run("runs/pong-dim-c+-s0-1a2b3c4d")
        run.config, run.encoder(), run.untrained(), run.training.steps

    Args:
        run: Directory of the run.
    """
    opened = FinishedRun(Path(run))
    _ = opened.config, opened.description  # an unfinished or foreign run is refused here
    return opened


def open_store(path: Path | str) -> Store | EnvironmentStore:
    """Open a store of a game or an environment, or raise `UserError` naming the file that is missing or changed.

        store = manicap.open_store("data/pong/1a2b3c4d5e6f")
        store.frames[0], store.ram[0], store.config.steps

    Args:
        path: Directory of the store, as `collect` and `record` return it in `store.path`.
    """
    return open_environment_store(path) if is_environment_store(Path(path)) else open_game_store(path)


def methods() -> dict[str, str]:
    """Every method, with a one-line description.

    for name, line in manicap.methods().items():
        print(name, line)
    """
    return {name: (METHODS[name].__doc__ or "").strip().splitlines()[0] for name in METHODS}


def games() -> dict[str, str]:
    """Every Atari game, with a one-line description: its title, its annotated variables, the tables that include it.

    print(manicap.games()["pong"])
    """
    return {name: _about(game) for name, game in GAMES.items()}


def _about(game: Game) -> str:
    variables = len(annotations(game, "corrected")) if "corrected" in sets_with(game) else 0
    papers = [
        word for word, is_in in (("arXiv 1906.08226", game.in_stdim), ("arXiv 2405.13848", game.in_paper)) if is_in
    ]
    return f"{game.title}: {variables} state variables; in {' and '.join(papers) or 'no published table'}"


def _chosen(
    learn: str | EnvironmentStore | None, method: str | None, settings: Mapping[str, Any]
) -> tuple[str | None, dict[str, Any]]:
    """The method, and the settings with what to learn from."""
    if isinstance(learn, EnvironmentStore):
        if "env" in settings:
            raise UserError("give a store or env=..., not both")
        return method, {"env": str(learn.path), **settings}
    if not isinstance(learn, str | None):
        raise UserError(f"the first argument must be a method or a store of an environment, got {type(learn).__name__}")
    if learn is not None and method is not None:
        raise UserError(f"give one method, not {learn!r} and {method!r}")
    plain = {key: str(value) if isinstance(value, Path) else value for key, value in settings.items()}
    return learn or method, {key: importable(as_written(key, value), key) for key, value in plain.items()}


def build_config(method: str | None, settings: Mapping[str, Any], preset: PresetName, domain: str | None) -> RunConfig:
    """The preset's config with these values, each a field of the config or of the method's settings."""
    named = domain or next(filter(None, map(domain_of_field, settings)), "atari")
    allow_plugins(_texts(method, domain, *settings.values()))
    found = find_domain(named)
    method = method or found.default_method
    subject = settings.get(found.subject_field, found.default_subject)
    if subject is None:
        raise UserError(f"give what to learn from, such as {found.subject_field}='{found.example_subject}'")
    values = to_dict(found.preset(preset, str(subject), method, settings))
    own = {item.name for item in fields(find_method(method).settings_type)}
    for key, value in settings.items():
        if key in own:
            values["settings"][key] = value
        elif key in {item.name for item in fields(found.config_type)}:
            values[key] = value
        else:
            raise unknown_choice("setting", key, own | {item.name for item in fields(found.config_type)})
    return config_from_dict(values, source="config")


def _texts(*values: Any) -> list[str]:
    """The values that may name a plug-in."""
    return [value for value in values if isinstance(value, str) and could_be_plugin(value)]
