"""Result files as a grid's runs leave them, with made-up scores: a report is made from files alone."""

import numpy as np

from manicap.core.config import config_hash, to_dict
from manicap.core.results import write_result
from manicap.core.sealed import write_sealed
from manicap.core.seeding import numpy_generator
from manicap.train.encoder_files import FORMAT
from manicap.train.logs import METRICS, LogFile
from manicap.train.record import RunRecord


def synthetic_score(cell, evaluation):
    """Deterministic and in [0, 1]."""
    rng = numpy_generator(cell.config.seed, cell.config.subject, cell.config.method, evaluation.probe_input)
    level = 0.3 + 0.4 * (len(cell.config.method) % 5) / 5
    return float(np.clip(level + 0.02 * rng.standard_normal(), 0, 1))


def scores_of(cell, value):
    return {"f1": value, "accuracy": min(1.0, value + 0.02)} if cell.config.domain == "atari" else {"accuracy": value}


def write_synthetic_run(runs_dir, cell, score=synthetic_score, validations=100, with_page=True):
    run_dir = runs_dir / cell.name
    run_dir.mkdir(parents=True)
    sha256 = cell.name.encode().hex()
    write_sealed(run_dir / "encoder.json", {"format": FORMAT, "sha256": {"chosen": sha256}})
    for evaluation in cell.evaluations:
        value = score(cell, evaluation)
        result = {
            "game" if cell.config.domain == "atari" else "dataset": cell.config.subject,
            "method": cell.config.method,
            "seed": cell.config.seed,
            "encoder": f"{sha256}-{evaluation.probe_input}",
            "evaluation_config": to_dict(evaluation),
            "pretrain_config": to_dict(cell.config),
            "training": {"steps": 125_000, "epochs": 100, "best_epoch": 99, "weights": "best"},
            "evaluation": {"scores": scores_of(cell, value), "width": 3456},
        }
        write_result(run_dir / "results" / f"{config_hash(evaluation)}.json", result)
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
