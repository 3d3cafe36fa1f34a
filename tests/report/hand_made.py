"""A result of the ridge probe made by hand: three variables, two draws, and numbers that can be checked by eye.

Labels saved at 200 labels: the untrained network needs 800 for ball_x (4 x), 200 for player_score (1 x) and 400 for
difficulty (2 x); the geometric mean is 2 x.
"""

from dataclasses import replace

from manicap.core.config import to_dict
from manicap.domains.atari.config import atari_preset
from manicap.domains.atari.evaluation_config import AtariEvaluationConfig
from manicap.domains.result import RunResult, TrainingFacts
from manicap.probing.metrics import Score, Scores
from manicap.probing.reading import Reading
from manicap.probing.state_result import StateEvaluation
from manicap.train.logs import METRICS, LogFile
from manicap.train.record import RunRecord

COUNTS = (50, 100, 200, 400, 800)
CATEGORIES = {
    "small_object_localization": ("ball_x",),
    "score_clock_lives_display": ("player_score",),
    "misc_keys": ("difficulty",),
}
KINDS = {"ball_x": "place", "player_score": "number", "difficulty": "class"}
ENCODER_CURVES = {
    "ball_x": (0.2, 0.4, 0.6, 0.7, 0.8),
    "player_score": (0.1, 0.3, 0.5, 0.6, 0.7),
    "difficulty": (0.6, 0.7, 0.8, 0.85, 0.9),
}
UNTRAINED_CURVES = {
    "ball_x": (0.1, 0.2, 0.3, 0.45, 0.6),
    "player_score": (0.1, 0.2, 0.5, 0.55, 0.6),
    "difficulty": (0.5, 0.6, 0.7, 0.8, 0.85),
}


def reading(curves, spread=0.1, **changes):
    """Two draws: with 50 labels `spread` below and above the curve, with 800 there is one."""
    values = {
        "counts": COUNTS,
        "curves": {
            name: ((first - spread, *middle, last), (first + spread, *middle, None))
            for name, (first, *middle, last) in curves.items()
        },
        "bits": {"ball_x": 3200.0, "player_score": 1600.0, "difficulty": 800.0},
        "plain_bits": 6400.0,
        "control": {"ball_x": 0.25, "player_score": 0.125},
        "components": {8: 0.3, 16: 0.5, 128: 0.75},
        "random": {8: 0.2, 16: 0.4, 128: 0.75},
        "at_end": (),
        "unconverged": 0,
        "layers": {"output": (256, 0.5), "convolution 1": (63648, 0.9), "backbone": (3456, 0.7)},
    }
    return Reading(**values | changes)


def scores(r2, f1, error):
    """R2 and the error are those of ball_x; player_score has half of them, difficulty has none."""
    ball = Score(f1, f1, f1 - 0.1, r2, error)
    score = Score(f1, f1, f1 - 0.1, r2 / 2, error / 2)
    name = Score(0.9 if r2 > 0 else 0.3, 0.9, 0.8)
    variables = {"ball_x": ball, "player_score": score, "difficulty": name}
    categories = {category: variables[found] for category, (found,) in CATEGORIES.items()}
    return Scores(Score(f1, f1, f1 - 0.1, 0.75 * r2, 0.75 * error), categories, variables)


def ridge_evaluation(**changes):
    found = StateEvaluation(
        subject="pong",
        protocol="fixed",
        probe="ridge",
        probe_options={},
        width=256,
        seed=0,
        store="made up",
        encoder="made up",
        threads=2,
        counts={
            "frames_train": 800,
            "frames_val": 100,
            "frames_test": 200,
            "test_frames_seen_in_training": 25,
            "episodes_too_short": 3,
            "frames_in_short_episodes": 40,
        },
        scores=scores(0.8, 0.7, 4.0),
        seconds={"features": 2.4, "probe": 53.8},
        annotation_set="corrected",
        feature_width=256,
        steps=1200,
        categories=CATEGORIES,
        kinds=KINDS,
        unseen={"ball_x": 0.0, "player_score": 0.125, "difficulty": 0.0},
        dropped=("enemy_x",),
    )
    found.floors = {"untrained": scores(0.6, 0.72, 6.0), "majority": scores(-2.0, 0.05, 30.0)}
    found.floors["pixels, random"] = scores(0.7, 0.71, 5.0)
    floor = reading(UNTRAINED_CURVES, bits={"ball_x": 6000.0, "player_score": 3000.0, "difficulty": 900.0})
    found.readings = {"encoder": reading(ENCODER_CURVES), "untrained": floor, "pixels, random": floor}
    return replace(found, **changes)


def other_evaluation(probe):
    """The same of a probe without label curves."""
    found = ridge_evaluation(probe=probe, readings={})
    del found.floors["pixels, random"]
    return found


def result(evaluation, seed=0, **config):
    probing = AtariEvaluationConfig(probe=evaluation.probe, probe_steps=1200)
    return RunResult(
        config=replace(atari_preset("quick", "pong", "st-dim"), seed=seed, **config),
        evaluation_config=probing,
        training=TrainingFacts(steps=500, epochs=1, best_epoch=0, weights="best", precision="float32"),
        encoder="made up",
        evaluation=replace(evaluation, seed=seed),
        versions={"manicap": "0.1.0"},
        predictions_sha256="made up",
    )


def write_run(run_dir, found):
    """A run's directory as far as its page needs it; without a store there is no player."""
    run_dir.mkdir()
    found.write(run_dir / "result.json")
    log = LogFile(run_dir / METRICS)
    log.write({"split": "train", "epoch": 0, "step": 20, "loss": 4.0})
    log.write({"split": "train", "epoch": 0, "step": 40, "loss": 3.0})
    log.close()
    RunRecord(to_dict(found.config), 20, logs={METRICS: log.sha256}).write(run_dir)
    return run_dir
