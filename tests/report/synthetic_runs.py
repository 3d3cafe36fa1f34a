"""Result files as a grid's runs leave them, with made-up scores: a report is made from files alone."""

import numpy as np

from manicap.core.config import config_hash, to_dict
from manicap.core.sealed import write_sealed
from manicap.core.seeding import numpy_generator
from manicap.domains.result import RunResult, TrainingFacts
from manicap.pretrained.encoder_files import FORMAT
from manicap.probing.class_result import ClassEvaluation, ClassScores
from manicap.probing.metrics import Score, Scores
from manicap.probing.state_result import StateEvaluation
from manicap.train.logs import METRICS, LogFile
from manicap.train.record import RunRecord


def synthetic_score(cell, evaluation):
    """Deterministic and in [0, 1]."""
    rng = numpy_generator(cell.config.seed, cell.config.subject, cell.config.method, evaluation.probe_input)
    level = 0.3 + 0.4 * (len(cell.config.method) % 5) / 5
    return float(np.clip(level + 0.02 * rng.standard_normal(), 0, 1))


def made_up_evaluation(config, evaluation, value, encoder="made up"):
    """Of state variables or of classes, whose every score is `value`."""
    common = {
        "subject": config.subject,
        "protocol": evaluation.protocol,
        "probe": evaluation.probe,
        "probe_options": {},
        "width": 3456,
        "seed": config.seed,
        "store": "made up",
        "encoder": encoder,
        "threads": 1,
        "seconds": {},
    }
    if config.domain == "images":
        scores = ClassScores(value, None, {"cat": value})
        return ClassEvaluation(**common, scores=scores, counts={"train": 1, "test": 1})
    score = Score(value, min(1.0, value + 0.02), value, value, 1.0)
    return StateEvaluation(
        **common,
        annotation_set=evaluation.annotation_set,
        feature_width=3456,
        steps=evaluation.probe_steps,
        counts={"frames_train": 1, "frames_val": 1, "frames_test": 1},
        categories={"agent_localization": ("player_x",)},
        kinds={"player_x": "place"},
        unseen={"player_x": 0.0},
        scores=Scores(score, {"agent_localization": score}, {"player_x": score}),
    )


def made_up_result(config, evaluation, value=0.5, encoder="made up", precision="float32"):
    """A result as a job leaves it."""
    return RunResult(
        config=config,
        evaluation_config=evaluation,
        training=TrainingFacts(steps=125_000, epochs=100, best_epoch=99, weights="best", precision=precision),
        encoder=encoder,
        evaluation=made_up_evaluation(config, evaluation, value, encoder),
        versions={},
        predictions_sha256="made up",
    )


def write_synthetic_run(runs_dir, cell, score=synthetic_score, validations=100, with_page=True):
    run_dir = runs_dir / cell.name
    run_dir.mkdir(parents=True)
    sha256 = cell.name.encode().hex()
    write_sealed(run_dir / "encoder.json", {"format": FORMAT, "sha256": {"chosen": sha256}})
    for evaluation in cell.evaluations:
        value, encoder = score(cell, evaluation), f"{sha256}-{evaluation.probe_input}"
        result = made_up_result(cell.config, evaluation, value, encoder)
        result.write(run_dir / "results" / f"{config_hash(evaluation)}.json")
    lines = []
    for epoch in range(validations):
        for step in range(60):
            lines.append(
                {"split": "train", "epoch": epoch, "step": 1250 * epoch + 20 * step, "loss": 4.0, "local": 2.0}
            )
        lines.append({"split": "val", "epoch": epoch, "step": 1250 * (epoch + 1), "loss": 5.0 / (1 + 0.1 * epoch)})
    log = LogFile(run_dir / METRICS)
    for line in lines:
        log.write(line)
    log.close()
    RunRecord(to_dict(cell.config), 20, logs={METRICS: log.sha256}).write(run_dir)
    if with_page:
        (run_dir / "report.html").write_text("<!doctype html>")
