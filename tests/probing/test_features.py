import json

import numpy as np
import pytest
import torch
from torch import nn

from manicap.core.errors import Failure, UserError
from manicap.probing import features
from manicap.probing.encoders import FrameEncoder
from manicap.probing.features import extract_all, extract_features, project_features
from tests.probing.conftest import block_contrast

ROWS = np.array([5, 3, 900, 17, 17])


class Pool(nn.Module):
    """uint8 frames to 4 features; counts its calls."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(30, 4)
        self.num_calls = 0

    def forward(self, frames):
        assert frames.dtype == torch.uint8
        assert torch.is_inference_mode_enabled()
        self.num_calls += 1
        pooled = nn.functional.adaptive_avg_pool2d(frames.float() / 255, (6, 5)).flatten(1)
        return self.linear(pooled)


def encode_plainly(encoder, store, rows):
    """One frame at a time."""
    with torch.inference_mode():
        return torch.cat([encoder(torch.from_numpy(store.frames[row][None, None].copy())) for row in rows]).numpy()


def test_rows_come_in_the_order_asked_whatever_the_batch(probe_store):
    encoder = Pool().eval()
    expected = encode_plainly(encoder, probe_store, ROWS)
    for batch_size in (1, 2, 128):
        found = extract_features(encoder, probe_store, ROWS, batch_size=batch_size, quiet=True)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_several_encoders_share_one_pass_over_the_frames(probe_store, tmp_path, monkeypatch):
    rows, pool = np.arange(300), Pool().eval()
    alone = [extract_features(each, probe_store, rows, quiet=True) for each in (pool, block_contrast)]
    read = []
    own = features._read_blocks
    monkeypatch.setattr(features, "_read_blocks", lambda *args: read.append(len(args[1])) or own(*args))
    together = extract_all([(pool, None), (block_contrast, "mine")], probe_store, rows, tmp_path, quiet=True)
    for found, expected in zip(together, alone, strict=True):
        np.testing.assert_array_equal(found, expected)
    assert read == [300]
    # With the features of one on disk, a pass is made for the other; with both, none.
    next(tmp_path.glob("*.npy")).unlink()
    for _ in range(2):
        extract_all([(pool, None), (block_contrast, "mine")], probe_store, rows, tmp_path, quiet=True)
    assert read == [300, 300]


def test_input_kinds(probe_store):
    frame = np.array(probe_store.frames[:2])
    seen = []

    def encoder(frames):
        seen.append(frames)
        return np.zeros((len(frames), 1))

    for kind in ("uint8", "float", "normalized"):
        FrameEncoder(encoder, kind)(frame)
    FrameEncoder(encoder, "normalized", (0.25, 2.0))(frame)
    FrameEncoder(encoder, "float", arrays="torch")(frame)
    assert [each.shape for each in seen] == [(2, 1, 210, 160)] * 5
    assert seen[0].dtype == np.uint8
    assert all(each.dtype == np.float32 for each in seen[1:4])
    np.testing.assert_array_equal(seen[0][:, 0], frame)
    np.testing.assert_allclose(seen[1][:, 0], frame / 255, atol=1e-7)
    np.testing.assert_allclose(seen[2][:, 0], frame / 127.5 - 1, atol=1e-6)
    np.testing.assert_allclose(seen[3][:, 0], (frame / 255 - 0.25) / 2, atol=1e-6)
    assert seen[4].dtype == torch.float32


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (lambda x: x.mean((2, 3)).astype(np.float32)[:, :, None], r"got shape \[5, 1, 1\]: flatten"),
        (lambda x: x.reshape(len(x), -1), "got dtype uint8"),
        (lambda x: np.zeros((len(x) - 1, 3)), r"\[5, F\] for 5 frames; got shape \[4, 3\]"),
        (lambda x: np.full((len(x), 3), np.nan), "5 of 5 frames have NaN"),
        (lambda x: np.full((len(x), 3), 1e300), "5 of 5 frames have NaN or infinite"),
        (lambda x: [1, 2, 3], "got list"),
        (lambda x: x.float().mean((2, 3)), "arrays='torch'"),
        (3, "must be a function"),
        (lambda x: np.random.default_rng().random((len(x), 3)), "deterministic"),
    ],
)
def test_a_wrong_encoder_is_told_what_is_required(probe_store, encoder, message):
    with np.errstate(over="ignore"), pytest.raises(UserError, match=message):
        extract_features(encoder, probe_store, ROWS, quiet=True)


@pytest.mark.parametrize("layer", [nn.Dropout(0.5), nn.BatchNorm2d(1), nn.Dropout2d(0.1), nn.BatchNorm1d(33600)])
def test_an_encoder_left_in_training_mode_is_refused(probe_store, layer):
    class Floats(nn.Module):
        def forward(self, frames):
            return frames.float()

    layers = [layer, nn.Flatten()] if not isinstance(layer, nn.BatchNorm1d) else [nn.Flatten(), layer]
    encoder = nn.Sequential(Floats(), *layers)
    with pytest.raises(UserError, match=r"training mode, .*call encoder\.eval\(\) first"):
        extract_features(encoder, probe_store, ROWS, quiet=True)
    assert extract_features(encoder.eval(), probe_store, ROWS, quiet=True).shape == (5, 33600)


def test_functional_dropout_is_noticed_by_its_noise(probe_store):
    class Hidden(Pool):
        def forward(self, frames):
            return nn.functional.dropout(super().forward(frames), training=self.training)

    with pytest.raises(UserError, match="deterministic"):
        extract_features(Hidden(), probe_store, ROWS, quiet=True)
    extract_features(Hidden().eval(), probe_store, ROWS, quiet=True)


def test_cached_features_are_read_back_without_encoding_again(probe_store, tmp_path):
    encoder = Pool().eval()
    rows = np.arange(600)
    first = extract_features(encoder, probe_store, rows, cache_dir=tmp_path, quiet=True, batch_size=50)
    calls = encoder.num_calls
    again = extract_features(encoder, probe_store, rows, cache_dir=tmp_path, quiet=True, batch_size=50)
    assert encoder.num_calls == calls + 2  # the two looks at the first frames
    assert isinstance(again, np.memmap)
    np.testing.assert_array_equal(first, again)
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".npy"]
    # Another encoder, other rows and another input are other features.
    other = Pool().eval()
    with torch.no_grad():
        other.linear.bias += 1
    for changed in (
        extract_features(other, probe_store, rows, cache_dir=tmp_path, quiet=True),
        extract_features(encoder, probe_store, rows[::-1].copy(), cache_dir=tmp_path, quiet=True),
    ):
        assert not np.allclose(changed, first)
    assert len(list(tmp_path.glob("*.npy"))) == 3


@pytest.mark.parametrize("damage", ["truncated", "flipped", "emptied", "no json", "bad json"])
def test_a_damaged_cache_is_made_again(probe_store, tmp_path, damage):
    encoder = Pool().eval()
    rows = np.arange(100)
    expected = np.array(extract_features(encoder, probe_store, rows, cache_dir=tmp_path, quiet=True))
    path = next(tmp_path.glob("*.npy"))
    content = bytearray(path.read_bytes())
    if damage == "truncated":
        path.write_bytes(content[:-100])
    elif damage == "flipped":
        content[-3] ^= 255
        path.write_bytes(content)
    elif damage == "emptied":
        path.write_bytes(b"")
    elif damage == "no json":
        path.with_suffix(".json").unlink()
    else:
        path.with_suffix(".json").write_text("{")
    found = extract_features(encoder, probe_store, rows, cache_dir=tmp_path, quiet=True)
    np.testing.assert_array_equal(found, expected)
    assert json.loads(path.with_suffix(".json").read_text())["shape"] == [100, 4]


def test_a_function_is_cached_under_the_name_it_is_given_and_checked(probe_store, tmp_path):
    rows = np.arange(60)
    extract_features(block_contrast, probe_store, rows, cache_dir=tmp_path, quiet=True)
    assert not list(tmp_path.iterdir())
    extract_features(block_contrast, probe_store, rows, cache_dir=tmp_path, fingerprint="mine", quiet=True)
    # Another function under the same name: the cache disagrees on the first frames and is made again.
    found = extract_features(
        lambda x: 2 * block_contrast(x), probe_store, rows, cache_dir=tmp_path, fingerprint="mine", quiet=True
    )
    np.testing.assert_array_equal(found, 2 * block_contrast(np.array(probe_store.frames[:60])))
    assert len(list(tmp_path.glob("*.npy"))) == 1


def test_a_failing_encoder_leaves_no_file(probe_store, tmp_path):
    class Failing(Pool):
        def forward(self, frames):
            found = super().forward(frames)
            return found if len(frames) == 16 else found * torch.nan

    with pytest.raises(UserError, match="NaN"):
        extract_features(Failing().eval(), probe_store, np.arange(100), cache_dir=tmp_path, quiet=True)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_told_and_leaves_nothing(probe_store, small_disk, monkeypatch):
    # 3,200 rows of 2,100 features of 4 bytes: 27 MB, on a disk of 4.
    encoder = FrameEncoder(lambda frames: frames.reshape(len(frames), -1)[:, :2100].astype(np.float32))
    rows = np.arange(3200)
    options = {"cache_dir": small_disk, "fingerprint": "large", "quiet": True}
    with pytest.raises(Failure, match=r"the features of 3,200 samples need 0.027 GB, but only 0.004 GB are free in"):
        extract_features(encoder, probe_store, rows, **options)
    monkeypatch.setattr("manicap.probing.feature_cache.require_space", lambda *_: None)  # it fills up on the way
    with pytest.raises(Failure, match="cannot write features to .*: No space left on device"):
        extract_features(encoder, probe_store, rows, **options)
    assert list(small_disk.iterdir()) == []


def test_what_a_killed_writer_left_is_cleared(probe_store, tmp_path):
    (tmp_path / ".features-0.npy.a1b2c3d4.scratch").write_bytes(b"half")
    extract_features(block_contrast, probe_store, np.arange(50), cache_dir=tmp_path, fingerprint="small", quiet=True)
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".npy"]


def test_projection_is_orthogonal_and_seeded():
    # The projection of the identity is the map itself: its columns are orthonormal.
    projection = project_features(np.eye(50, dtype=np.float32), 20, seed=3)
    np.testing.assert_allclose(projection.T @ projection, np.eye(20), atol=1e-6)
    np.testing.assert_array_equal(projection, project_features(np.eye(50, dtype=np.float32), 20, seed=3))
    assert not np.allclose(projection, project_features(np.eye(50, dtype=np.float32), 20, seed=4))
    with pytest.raises(UserError, match="between 1 and the encoder's 50 features, got 51"):
        project_features(np.eye(50, dtype=np.float32), 51, seed=0)
