"""Probe the encoder of a finished run. Each way of probing is measured once and kept in the run's directory.

runs/<name>/results/<hash>.json    scores, and everything they depend on
runs/<name>/results/<hash>.npz     the probe's predictions for all test samples
runs/<name>/features/              features, as long as there are more probes to come
runs/.floors/                      what a probe found in untrained networks and pixels, which runs share
"""

import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from manicap.algorithms import find_method
from manicap.core.config import check_config, config_hash
from manicap.core.errors import UserError
from manicap.core.files import sha256_file
from manicap.core.memo import opened_once
from manicap.core.paths import DATA_DIR
from manicap.domains.base import find_domain
from manicap.domains.evaluation import EvaluationConfig, Probed
from manicap.domains.result import RunResult
from manicap.jobs.same_data import is_of_data
from manicap.train.device import return_freed_memory, set_threads
from manicap.train.finished import FinishedRun
from manicap.train.identity import cpu_model

FLOORS = ".floors"
VERSIONS = ("manicap", "torch", "numpy", "ale-py")


def probe(
    run_dir: Path,
    evaluation: EvaluationConfig,
    data_dir: Path = DATA_DIR,
    threads: int | None = None,
    quiet: bool = False,
) -> RunResult:
    """The result of probing a finished run in this way, read from disk if it was already measured.

    The floors are the most frequent answer and the same network as initialised, probed in the same way.
    """
    check_config(evaluation)
    run, path = FinishedRun(run_dir), result_path(run_dir, evaluation)
    domain = find_domain(run.config.domain)
    weights = domain.weights(run.config, evaluation, run.training.weights)
    encoder = run.encoder(evaluation.probe_input, weights)  # type: ignore[arg-type]
    with opened_once():
        known = known_result(path, encoder.fingerprint)
        if known is not None and is_of_data(known, run.config, evaluation, data_dir):
            return known
        set_threads(threads)
        return_freed_memory()
        is_trained = find_method(run.config.method).is_trained
        untrained = run.untrained(evaluation.probe_input) if is_trained else encoder
        measured = domain.evaluate(
            Probed(
                config=run.config,
                evaluation=evaluation,
                encoder=encoder,
                untrained=untrained,
                fingerprint=encoder.fingerprint,
                untrained_fingerprint=untrained.fingerprint,
                cache_dir=run_dir / "features",
                floors_dir=run_dir.parent / FLOORS,
                quiet=quiet,
            ),
            data_dir,
        )
    result = RunResult(
        config=run.config,
        evaluation_config=evaluation,
        training=run.training,
        encoder=encoder.fingerprint,
        evaluation=measured,
        versions=_versions(),
        predictions_sha256=measured.predictions.save(path.with_suffix(".npz")),
    )
    result.write(path)
    return RunResult.read(path)


def result_path(run_dir: Path, evaluation: EvaluationConfig) -> Path:
    """Where the result of one way of probing is kept."""
    return run_dir / "results" / f"{config_hash(evaluation)}.json"


def known_result(path: Path, encoder: str) -> RunResult | None:
    """The earlier result of this encoder, if it is intact; a damaged one is measured again."""
    if not path.is_file():
        return None
    try:
        result, labels = RunResult.read(path), path.with_suffix(".npz")
    except UserError as error:
        print(f"measuring again: {error}", file=sys.stderr)
        return None
    if result.encoder != encoder or not labels.is_file():
        return None
    return result if sha256_file(labels) == result.predictions_sha256 else None


def _versions() -> dict[str, str]:
    """Of what a result depends on, with the machine."""
    found = {"machine": cpu_model()}
    for name in VERSIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # the package of a domain that is not installed
            continue
    return found
