import numpy as np
import pytest
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.preprocessing import preprocess_obs

import manicap.rl
from manicap.core.errors import UserError
from manicap.rl import ManicapExtractor
from manicap.rl.extractor import Blueprint

SMALL = {"n_steps": 4, "batch_size": 8, "n_epochs": 1, "device": "cpu", "seed": 0}


@pytest.fixture(scope="module")
def envs():
    made = manicap.rl.make_env("pong", num_envs=2, num_workers=1)
    yield made
    made.close()


def agent(envs, run, **options):
    return PPO("CnnPolicy", envs, policy_kwargs=ManicapExtractor.policy_kwargs(run, **options), **SMALL)


def weights(module):
    return {name: value.clone() for name, value in module.state_dict().items()}


def same(first, second):
    return [name for name in first if not torch.equal(first[name], second[name])] == []


def test_what_was_learned_survives_the_policys_own_initialisation_and_a_frozen_encoder_its_training(envs, run, encoder):
    # ActorCriticPolicy calls `apply` with an orthogonal initialisation of every layer of its extractor.
    model = agent(envs, run)
    extractor = model.policy.features_extractor
    assert same(encoder.state_dict(), extractor.features.encoder.state_dict())
    model.learn(8)
    assert same(encoder.state_dict(), extractor.features.encoder.state_dict())
    assert not any(module.training for module in extractor.features.modules())


def test_a_fine_tuned_encoder_moves(envs, run, encoder):
    model = agent(envs, run, frozen=False, layer="backbone")
    before = weights(model.policy.features_extractor.features)
    model.learn(8)
    after = weights(model.policy.features_extractor.features)
    assert not torch.equal(
        before["encoder.method.encoder.encoder.conv1.weight"], after["encoder.method.encoder.encoder.conv1.weight"]
    )


def test_the_encoder_sees_the_very_bytes(envs, run, encoder):
    frames = torch.randint(0, 256, (3, 1, 210, 160), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    for normalize in (True, False):
        extractor = ManicapExtractor(envs.observation_space, run, is_scaled=normalize)
        seen = preprocess_obs(frames, envs.observation_space, normalize_images=normalize)
        assert torch.equal(extractor(seen), encoder(frames))


def test_frames_that_do_not_fit_are_refused(run):
    envs = manicap.rl.make_env("pong", num_envs=2, stack=4, size=(84, 84), num_workers=1)
    with pytest.raises(
        UserError, match=r"expects frames uint8 \[1, 210, 160\], but the environment gives uint8 \[4, 84"
    ):
        agent(envs, run)


def test_a_structure_without_weights_refuses_to_play(envs, run):
    kwargs = ManicapExtractor.policy_kwargs(run)["features_extractor_kwargs"]
    bare = Blueprint.__new__(Blueprint)
    bare.__dict__.update(kwargs["encoder"].__getstate__())
    extractor = ManicapExtractor(envs.observation_space, bare)
    frames = torch.zeros(1, 1, 210, 160)
    with pytest.raises(UserError, match="weights were not loaded yet"):
        extractor(frames)
    extractor.load_state_dict(ManicapExtractor(envs.observation_space, run).state_dict())
    assert np.isfinite(extractor(frames).numpy()).all()
