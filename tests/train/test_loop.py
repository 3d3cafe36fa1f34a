import json
import math

import pytest
import torch

from manicap import load
from manicap.core.errors import Failure, UserError
from manicap.train.checkpoint import CheckpointStore
from manicap.train.device import choose_device, choose_precision, cpu_survives_bfloat16
from manicap.train.loop import Run, pretrain
from manicap.train.record import describe_differences
from manicap.train.setup import Execution
from tests.algorithms.small import small_config
from tests.train.runner import EXECUTION, fork_server, result_bytes, run_to_end


def read_metrics(run_dir, split):
    lines = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if line["split"] == split]


def test_the_same_config_trains_to_the_same_bytes_twice(data_dir, tmp_path):
    for name in ("a", "b"):
        run_to_end(small_config("dim-uac+"), tmp_path / name, data_dir)
    assert result_bytes(tmp_path / "a") == result_bytes(tmp_path / "b")


def test_another_seed_trains_to_other_bytes(data_dir, tmp_path):
    run_to_end(small_config("st-dim", max_steps=2), tmp_path / "a", data_dir)
    run_to_end(small_config("st-dim", max_steps=2, seed=1), tmp_path / "b", data_dir)
    assert result_bytes(tmp_path / "a")["encoder.safetensors"] != result_bytes(tmp_path / "b")["encoder.safetensors"]


def test_metrics_hold_every_step_and_every_validation(data_dir, tmp_path):
    run_to_end(small_config("dim-c+", max_steps=7), tmp_path / "run", data_dir)
    train, val = read_metrics(tmp_path / "run", "train"), read_metrics(tmp_path / "run", "val")
    assert [line["step"] for line in train] == list(range(1, 8))
    assert len(val) == 1
    for line in train:
        assert line["loss"] == pytest.approx(line["global"] + line["local"] + line["capacity"], rel=1e-6)
        # The bound of the nuclear norm of 6 centroids in 8 dimensions is sqrt(6 * 6).
        assert line["capacity_bound"] == 6.0
        assert 0 < line["capacity_percent"] <= 100


def test_an_epoch_budget_validates_after_every_epoch_and_patience_stops(data_dir, tmp_path):
    # A learning rate of 1e-12 changes nothing, so no epoch is better than the first: patience 2 ends after epoch 2.
    config = small_config("dim", max_steps=None, max_epochs=9, patience=2, learning_rate=1e-12, batch_size=60)
    run_to_end(config, tmp_path / "run", data_dir, Execution(threads=1, quiet=True))
    val = read_metrics(tmp_path / "run", "val")
    assert len(val) <= 4
    description = json.loads((tmp_path / "run" / "encoder.json").read_text())
    assert description["epochs"] == len(val)
    assert description["epochs"] - 1 - description["best_epoch"] == 2


def test_the_chosen_weights_are_those_of_the_best_validation(data_dir, tmp_path):
    # A huge learning rate makes later epochs worse than the first.
    config = small_config("dim", max_steps=None, max_epochs=3, learning_rate=3.0, batch_size=60)
    run_to_end(config, tmp_path / "run", data_dir, Execution(threads=1, quiet=True))
    losses = [line["loss"] for line in read_metrics(tmp_path / "run", "val")]
    description = json.loads((tmp_path / "run" / "encoder.json").read_text())
    assert description["best_epoch"] == losses.index(min(losses))
    assert description["weights"] == "best"
    files = result_bytes(tmp_path / "run")
    same = files["encoder.safetensors"] == files["encoder-last.safetensors"]
    assert same == (description["best_epoch"] == 2)


def test_a_saved_encoder_represents_as_the_method_did(data_dir, tmp_path):
    for name in ("dim-ua", "dim-c+", "random-cnn", "majority"):
        run_to_end(small_config(name, max_steps=2), tmp_path / name, data_dir)
        encoder = load(tmp_path / name, weights="last")
        assert encoder.num_features == {"dim-ua": 8, "dim-c+": 3456, "random-cnn": 8, "majority": 1}[name]
        frames = torch.randint(0, 256, (3, 1, 210, 160), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
        assert encoder(frames).shape == (3, encoder.num_features)
        assert not encoder.training
    assert load(tmp_path / "dim-ua", "backbone").num_features == 3456


def test_a_damaged_encoder_is_refused(data_dir, tmp_path):
    run_to_end(small_config("random-cnn"), tmp_path / "run", data_dir)
    content = bytearray((tmp_path / "run" / "encoder.safetensors").read_bytes())
    content[-5] ^= 1
    (tmp_path / "run" / "encoder.safetensors").write_bytes(content)
    with pytest.raises(UserError, match="its sha256 differs"):
        load(tmp_path / "run")
    with pytest.raises(UserError, match="there is no encoder in"):
        load(tmp_path)


def poison(monkeypatch, at_step, what):
    """Makes the loss or the gradient of one step not a number."""
    batch = Run.step

    def step(self, rows):
        if self.progress.step == at_step:
            parameter = next(self.setup.method.parameters())
            if what == "loss":
                parameter.data.view(-1)[0] = math.nan
            else:
                parameter.register_hook(lambda grad: grad * math.nan)
        return batch(self, rows)

    monkeypatch.setattr(Run, "step", step)


@pytest.mark.parametrize(
    ("what", "clip", "sentence"),
    [
        ("loss", None, r"the loss is not finite at step 3 \(global nan, local nan\); the checkpoint of step 3 is kept"),
        ("gradient", 1.0, r"the gradient is not finite at step 3 \(global \d.*; the checkpoint of step 3 is kept"),
        ("gradient", None, r"the weights are not finite after step 4; the checkpoint of step 3 is kept"),
    ],
)
def test_a_non_finite_step_stops_with_its_parts_and_keeps_the_last_good_checkpoint(
    what, clip, sentence, data_dir, tmp_path, monkeypatch
):
    poison(monkeypatch, at_step=3, what=what)
    with pytest.raises(Failure, match=sentence):
        run_to_end(small_config("st-dim", clip_gradient_norm=clip), tmp_path / "run", data_dir)
    state = CheckpointStore(tmp_path / "run" / "checkpoints").load_newest(pytest.fail)
    assert state["progress"]["step"] == 3
    assert all(torch.isfinite(value).all() for value in state["method"].values())


def test_clipping_bounds_the_gradient(data_dir, tmp_path, monkeypatch):
    norms = []
    step = Run.step

    def measured(self, rows):
        loss = step(self, rows)
        norms.append(math.sqrt(sum(float(p.grad.square().sum()) for p in self.setup.method.parameters())))
        return loss

    monkeypatch.setattr(Run, "step", measured)
    run_to_end(small_config("vae", max_steps=3, clip_gradient_norm=0.5), tmp_path / "run", data_dir)
    assert max(norms) <= 0.5 * (1 + 1e-5)


def test_two_processes_on_one_run_train_it_once(data_dir, tmp_path):
    config = small_config("st-dim")
    run_to_end(config, tmp_path / "alone", data_dir)
    context = fork_server()
    processes = [context.Process(target=run_to_end, args=(config, tmp_path / "run", data_dir)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0, 0]
    assert result_bytes(tmp_path / "run") == result_bytes(tmp_path / "alone")


def test_a_full_disk_stops_the_run_and_the_checkpoint_before_stays(data_dir, small_disk):
    # A checkpoint of this model holds 285,224 parameters three times over, 3.4 MB: the disk of 4 MB takes one.
    sentence = "cannot write the checkpoint of step 2: No space left on device; the checkpoint of step 1 is kept"
    with pytest.raises(Failure, match=sentence):
        run_to_end(small_config("st-dim"), small_disk / "run", data_dir)
    state = CheckpointStore(small_disk / "run" / "checkpoints").load_newest(pytest.fail)
    assert state["progress"]["step"] == 1


def test_differences_are_named_leaf_by_leaf():
    old, new = {"config": {"seed": 0, "units": 4}, "threads": 2}, {"config": {"seed": 1, "units": 4}, "threads": 2}
    assert describe_differences(old, new) == ["config.seed was 0, is now 1"]


def test_all_problems_of_a_config_are_told_at_once(data_dir, tmp_path):
    config = small_config("st-dim", batch_size=0, patience=0, learning_rate=-1.0)
    with pytest.raises(UserError, match="batch_size must be .*; learning_rate must be positive.*; patience must be"):
        pretrain(config, tmp_path / "run", EXECUTION, data_dir)


def test_a_batch_larger_than_the_split_says_what_to_change(data_dir, tmp_path):
    with pytest.raises(UserError, match="fewer than one batch of 5000; collect more steps or use a smaller batch"):
        run_to_end(small_config("st-dim", batch_size=5000), tmp_path / "run", data_dir)


def test_a_run_directory_that_cannot_be_written_is_a_clear_error(data_dir, tmp_path):
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(UserError, match="cannot write to"):
        run_to_end(small_config("st-dim"), tmp_path / "runs" / "run", data_dir)


def test_an_absent_sink_says_how_to_install_it(data_dir, tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(UserError, match=r"pip install 'manicap\[wandb\]'"):
        run_to_end(
            small_config("st-dim"), tmp_path / "run", data_dir, Execution(threads=1, sinks=("wandb",), quiet=True)
        )


def test_the_device_and_precision_follow_the_machine():
    if not torch.cuda.is_available():
        with pytest.raises(UserError, match="device 'cuda' is not available here"):
            choose_device("cuda")
    cpu = torch.device("cpu")
    assert choose_precision("auto", cpu) == torch.float32
    if cpu_survives_bfloat16():
        assert choose_precision("bfloat16", cpu) == torch.bfloat16
    else:
        with pytest.raises(UserError, match="illegal instruction"):
            choose_precision("bfloat16", cpu)


def test_bfloat16_trains_where_the_cpu_survives_it(data_dir, tmp_path):
    if not cpu_survives_bfloat16():
        pytest.skip("this CPU does not survive bfloat16")
    execution = Execution(threads=1, precision="bfloat16", quiet=True, log_every=1)
    run_to_end(small_config("dim-c+", max_steps=2), tmp_path / "run", data_dir, execution)
    losses = [line["loss"] for line in read_metrics(tmp_path / "run", "train")]
    assert len(losses) == 2
    assert all(map(math.isfinite, losses))
