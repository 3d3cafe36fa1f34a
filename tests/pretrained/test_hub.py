"""Encoders travel over a hub: saved, pushed, downloaded by revision, kept, and checked."""

import json
import shutil
from dataclasses import replace

import pytest
import torch

import manicap
from manicap.core.errors import Failure
from manicap.core.sealed import read_sealed, write_sealed
from manicap.pretrained.hub import HubName
from tests.pretrained.hub_server import Hub

pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed: pip install 'manicap[hub]'")
NAME = "somebody/pong-encoder"


CURVES = {"encoder": {50: 0.4, 100: 0.6}, "untrained": {50: 0.2, 100: 0.3}}


@pytest.fixture(scope="module")
def encoder(probed):
    """With label curves, as the default probe measures them."""
    encoder = manicap.load(probed)
    score = replace(encoder.card.score, curves=CURVES, bounds={"f1": "at least"})
    encoder.card = replace(encoder.card, score=score)
    return encoder


@pytest.fixture(scope="module")
def saved(encoder, tmp_path_factory):
    return encoder.save_pretrained(tmp_path_factory.mktemp("saved") / "encoder")


@pytest.fixture
def files(saved):
    return {path.name: path.read_bytes() for path in saved.iterdir()}


@pytest.fixture
def hub(files, tmp_path, monkeypatch):
    """A hub with the encoder as v1 and main, an empty cache, and no saved token."""
    hub = Hub(NAME)
    hub.commit(files, "main", "v1")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.utils._headers.get_token", lambda: None)
    with hub.serve() as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        yield hub


def test_a_saved_directory_loads_as_what_was_saved(probed, encoder, saved, frames):
    again = manicap.load(saved)
    assert torch.equal(again(frames), encoder(frames))
    assert (again.card, again.layer, again.fingerprint) == (encoder.card, encoder.layer, encoder.fingerprint)
    assert not again.training
    assert torch.equal(manicap.load(saved, "backbone")(frames), manicap.load(probed, "backbone")(frames))


def test_the_readme_shows_the_score_beside_its_floors_and_how_to_load_it(encoder, saved):
    card, text = encoder.card, (saved / "README.md").read_text()
    head, _, body = text.removeprefix("---\n").partition("---\n")
    values = dict(line.split(": ", 1) for line in head.splitlines())
    assert json.loads(values["library_name"]) == "manicap"
    [index] = json.loads(values["model-index"])
    assert {m["type"]: m["value"] for m in index["results"][0]["metrics"]} == card.score.metrics
    row, floor = (f"{scores['f1']:.3f}" for scores in (card.score.metrics, card.score.floors["untrained"]))
    assert f"**at least {row}**" in body
    assert floor in next(line for line in body.splitlines() if line.startswith("| untrained"))
    assert f'manicap.load("{saved.name}")' in body
    assert "![Score by number of labels](label-curves.png)" in body
    assert (saved / "label-curves.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("directory", [".", "", "../pong-encoder/", "inner/.."])
def test_the_readme_names_the_directory_also_if_its_path_does_not(encoder, tmp_path, monkeypatch, directory):
    (tmp_path / "pong-encoder" / "inner").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "pong-encoder")
    encoder.save_pretrained(directory)
    assert 'manicap.load("pong-encoder")' in (tmp_path / "pong-encoder" / "README.md").read_text()


def test_files_of_something_else_are_not_replaced(encoder, tmp_path):
    for name, content in (("README.md", "# My project"), ("config.json", '{"library": "another"}')):
        directory = tmp_path / name.partition(".")[0]
        directory.mkdir()
        (directory / "notes.txt").write_text("other files are no obstacle")
        encoder.save_pretrained(directory)
        encoder.save_pretrained(directory)  # its own files are
        (directory / "config.json").unlink()
        (directory / name).write_text(content)
        with pytest.raises(manicap.UserError, match="that is not of a saved encoder: give an empty or a new directory"):
            encoder.save_pretrained(directory)
        assert (directory / name).read_text() == content


def test_changed_weights_are_saved_without_the_score_of_the_old_ones(probed, frames, tmp_path):
    encoder = manicap.load(probed, "backbone")
    with torch.no_grad():
        next(encoder.parameters()).mul_(2)
    again = manicap.load(encoder.save_pretrained(tmp_path))
    assert torch.equal(again(frames), encoder(frames))
    assert (again.layer, again.card.score, again.card.weights) == ("backbone", None, "changed after training")
    assert "It was not probed." in (tmp_path / "README.md").read_text()
    assert not (tmp_path / "label-curves.png").exists()


def test_a_push_is_one_commit_that_loads_by_name(encoder, frames, hub):
    hub.commits.clear()
    hub.refs.clear()
    address = encoder.push_to_hub(NAME, private=True, license="mit", token="hf_secret")
    [sha] = hub.commits
    assert address == f"{hub.address}/{NAME}/commit/{sha}"
    assert "private" in (
        hub.created[0].get("visibility"),
        *(key for key, value in hub.created[0].items() if value is True),
    )
    assert set(hub.commits[sha]) == {"README.md", "config.json", "label-curves.png", "model.safetensors"}
    assert f'manicap.load("{NAME}")' in hub.commits[sha]["README.md"].decode()
    assert 'license: "mit"' in hub.commits[sha]["README.md"].decode()
    assert {request[2] for request in hub.requests} == {"Bearer hf_secret"}
    assert torch.equal(manicap.load(NAME)(frames), encoder(frames))
    encoder.push_to_hub(f"{NAME}@small", token="hf_secret")
    assert set(hub.refs) == {"main", "small"}


def test_a_revision_is_downloaded_as_it_was(saved, files, hub, frames):
    first = hub.refs["v1"]
    description = read_sealed(saved / "config.json", "encoder", "")
    other = shutil.copytree(saved, saved.parent / "other", dirs_exist_ok=True)
    write_sealed(other / "config.json", {**description, "layer": "backbone"})
    hub.commit({**files, "config.json": (other / "config.json").read_bytes()}, "main")
    assert manicap.load(NAME).layer == "backbone"
    for revision in ("v1", first):
        assert manicap.load(f"{NAME}@{revision}").layer == "output"
        assert manicap.from_pretrained(NAME, revision=revision).num_features == 8
    assert manicap.from_pretrained(NAME, "v1", "local").num_features == 11 * 8 * 128
    # Weights are asked for by the commit of their config: a push in between does not mix two versions.
    weights = {path for _, path, _ in hub.requests if path.endswith("safetensors")}
    assert weights == {f"/{NAME}/resolve/{sha}/model.safetensors" for sha in hub.commits}


def test_a_download_that_breaks_off_is_resumed_where_it_was(files, hub, frames, saved, monkeypatch):
    monkeypatch.setattr("huggingface_hub.file_download.time.sleep", lambda seconds: None)
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 1 << 16)  # what is kept of it: whole chunks
    hub.breaks_once.add("model.safetensors")
    assert torch.equal(manicap.load(NAME)(frames), manicap.load(saved)(frames))
    ranges = [wanted for method, path, wanted in hub.requests if method == "GET" and path.endswith("safetensors")]
    assert ranges[0] is None
    kept = len(files["model.safetensors"]) // 2 >> 16 << 16
    assert ranges[1] == f"bytes={kept}-"


def test_other_weights_than_those_of_the_config_are_refused(files, hub):
    weights = bytearray(files["model.safetensors"])
    weights[-1] ^= 1
    hub.commit({**files, "model.safetensors": bytes(weights)}, "main")
    with pytest.raises(manicap.UserError, match=r"model\.safetensors is not the file that was saved \(its sha256"):
        manicap.load(NAME)
    hub.refs["main"] = hub.refs["v1"]
    assert manicap.from_pretrained(NAME, force_download=True).num_features == 8


def test_without_a_network_the_cache_is_used_and_then_the_error_is_clear(hub, frames, saved, monkeypatch):
    assert manicap.load(NAME).num_features == 8
    hub.status = 503
    assert torch.equal(manicap.load(NAME)(frames), manicap.load(saved)(frames))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # discard: nobody listens
    assert torch.equal(manicap.load(NAME)(frames), manicap.load(saved)(frames))
    with pytest.raises(Failure, match=r"cannot reach http://127\.0\.0\.1:9 .*, and somebody/other was not downloaded"):
        manicap.load("somebody/other")


def test_without_a_network_nothing_is_downloaded_again(hub, monkeypatch):
    assert manicap.from_pretrained(NAME).num_features == 8
    hub.status = 503
    with pytest.raises(Failure, match=r"cannot reach http://127.* to download somebody/pong-encoder again; try again"):
        manicap.from_pretrained(NAME, force_download=True)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # discard: nobody listens
    with pytest.raises(Failure, match=r"cannot reach http://127\.0\.0\.1:9 .* or without force_download to load what"):
        manicap.from_pretrained(NAME, force_download=True)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("somebody/nothing", r"there is no somebody/nothing on http://127.*; check the name, or run 'hf auth login'"),
        (f"{NAME}@v9", r"somebody/pong-encoder has no revision 'v9'; give a branch, a tag or a commit"),
        (f"{NAME}@bare", r"somebody/pong-encoder@bare is not an encoder of manicap: it has no config\.json"),
        (f"{NAME}@other", r"config\.json is not a manicap encoder: 'library' is missing"),
    ],
)
def test_what_is_not_on_the_hub_is_told(name, sentence, hub):
    hub.commit({"weights.bin": b"?"}, "bare")
    hub.commit({"config.json": b'{"model_type": "bert"}', "model.safetensors": b"?"}, "other")
    with pytest.raises(manicap.UserError, match=sentence) as error:
        manicap.load(name)
    assert "\n" not in str(error.value)


def test_a_push_that_is_not_allowed_is_told(encoder, hub):
    hub.status = 403
    with pytest.raises(manicap.UserError, match="does not allow access to somebody/pong-encoder; run 'hf auth login'"):
        encoder.push_to_hub(NAME)
    with pytest.raises(manicap.UserError, match=r"a hub's name must be user/name or user/name@branch, got 'pong'"):
        encoder.push_to_hub("pong")


def test_what_may_be_a_path_is_not_asked_for(tmp_path, monkeypatch):
    assert HubName.parse("user/name@v1.0") == HubName("user/name", "v1.0")
    for text in ("name", "./user/name", "/user/name", "user/name/more", "user/na me", "user/name@", "runs/pong-dim-c+"):
        assert HubName.parse(text) is None, text
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    monkeypatch.setattr("manicap.pretrained.loading.download", None)
    with pytest.raises(manicap.UserError, match="there is no encoder in runs/pong: give a finished run, a saved"):
        manicap.load("runs/pong")


def test_a_saved_encoder_of_a_newer_format_or_another_library_is_refused(saved, tmp_path):
    description = read_sealed(saved / "config.json", "encoder", "")
    for change, sentence in (
        ({"format": 2}, "format 2, but this version reads 1; install a newer manicap"),
        ({"library": "timm"}, "is not a manicap encoder: its library is 'timm'"),
        ({"card": {}}, "has no card of this version"),
        ({"card": {**description["card"], "steps": "many"}}, "has no card of this version .*steps must be of type int"),
        ({"method": 5}, "describes no network: its method is 5"),
        ({"settings": [1]}, r"describes no network: .* its settings \[1\]"),
        ({"num_variables": "x"}, "num_variables must be int"),
        ({"image_view": 3}, "image_view must be a table, got 3"),
        ({"input_shape": [1, 0, 160]}, "input_shape.* must be at least 1"),
        ({"input_shape": [1, 250, 160]}, "mean is float32 .* instead of float32|instead of"),
    ):
        write_sealed(tmp_path / "config.json", {**description, **change})
        shutil.copy(saved / "model.safetensors", tmp_path)
        with pytest.raises(manicap.UserError, match=sentence):
            manicap.load(tmp_path)
    with pytest.raises(manicap.UserError, match="has one set of weights"):
        manicap.load(saved, weights="last")


def test_a_missing_library_is_told(probed, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "huggingface_hub", None)
    with pytest.raises(manicap.UserError, match=r"require huggingface_hub: pip install 'manicap\[hub\]'"):
        manicap.load("somebody/else")
