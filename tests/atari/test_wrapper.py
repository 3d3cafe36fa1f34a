import ale_py
import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import FrameStackObservation, GrayscaleObservation, MaxAndSkipObservation

import manicap
from manicap.atari.games import GAMES
from manicap.core.errors import UserError

gymnasium.register_envs(ale_py)


@pytest.mark.parametrize(
    "make",
    [
        lambda: gymnasium.make("ALE/Pong-v5"),
        lambda: gymnasium.make("PongNoFrameskip-v4"),
        lambda: gymnasium.make("ALE/Pong-v5", obs_type="grayscale"),
        lambda: GrayscaleObservation(gymnasium.make("ALE/Pong-v5")),
        lambda: FrameStackObservation(MaxAndSkipObservation(gymnasium.make("PongNoFrameskip-v4")), 4),
    ],
    ids=["v5", "NoFrameskip-v4", "gray", "wrapped gray", "skipped and stacked"],
)
def test_labels_are_the_ram_on_reset_and_on_every_step(make):
    env = manicap.AtariARI(make(), annotation_set="ari-2020")
    _, info = env.reset(seed=0)
    for _ in range(40):
        ram = env.unwrapped.ale.getRAM()
        # Pong in ari-2020: the ball is at RAM 49 and 54, the paddles at 51 and 50.
        assert info["labels"]["ball_x"] == ram[49]
        assert info["labels"]["ball_y"] == ram[54]
        assert info["labels"]["player_y"] == ram[51]
        assert info["labels"]["enemy_y"] == ram[50]
        _, _, _, _, info = env.step(env.action_space.sample())
    assert all(type(value) is int for value in info["labels"].values())
    env.close()


# The checker recommends the unwrapped environment, but the wrapper is what is to be checked.
@pytest.mark.filterwarnings("ignore:.*different from the unwrapped version.*:UserWarning")
def test_the_environment_checker_passes():
    env = manicap.AtariARI(gymnasium.make("ALE/Breakout-v5", render_mode="rgb_array"))
    check_env(env, skip_render_check=True)
    env.close()


@pytest.mark.parametrize("name", sorted(GAMES))
def test_every_game_can_be_wrapped(name):
    env = manicap.AtariARI(gymnasium.make(f"ALE/{GAMES[name].title.replace(' ', '')}-v5"))
    _, info = env.reset(seed=0)
    assert info["labels"]
    assert all(0 <= value <= 255 for value in info["labels"].values())
    env.close()


def test_other_info_and_the_observation_are_untouched():
    plain, labelled = (gymnasium.make("ALE/Pong-v5") for _ in range(2))
    labelled = manicap.AtariARI(labelled)
    (frame, info), (frame_labelled, info_labelled) = plain.reset(seed=3), labelled.reset(seed=3)
    assert np.array_equal(frame, frame_labelled)
    assert {key: value for key, value in info_labelled.items() if key != "labels"}.keys() == info.keys()


def test_some_variables_can_be_chosen_and_a_wrong_one_is_refused_at_once():
    env = gymnasium.make("ALE/Pong-v5")
    assert list(manicap.AtariARI(env, variables=["ball_y"]).labels()) == ["ball_y"]
    with pytest.raises(UserError, match=r"unknown pong variable 'ball_z'; did you mean 'ball_[xy]'"):
        manicap.AtariARI(env, variables=["ball_z"])
    with pytest.raises(UserError, match="unknown annotation set 'ari-2021'"):
        manicap.AtariARI(env, annotation_set="ari-2021")


def test_an_environment_that_is_not_atari_is_refused():
    with pytest.raises(UserError, match="needs an ale-py environment .*, got CartPole-v1"):
        manicap.AtariARI(gymnasium.make("CartPole-v1"))
