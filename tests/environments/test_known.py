"""State variables of environments that are known, compared with what the environment itself shows."""

import gymnasium
import numpy as np
import pytest

from manicap.environments.known import OBSERVED, known_labels
from tests.environments.worlds import Silent


def test_a_maze_of_minigrid_is_read_cell_by_cell():
    import minigrid  # noqa: F401 - registers its environments
    from minigrid.core.constants import IDX_TO_OBJECT, STATE_TO_IDX

    env = gymnasium.make("MiniGrid-DoorKey-8x8-v0", render_mode="rgb_array")
    seen = set()
    for seed in range(3):
        env.reset(seed=seed)
        env.action_space.seed(seed)
        for _ in range(150):
            found = known_labels(env)
            base = env.unwrapped
            cells = base.grid.encode()  # [x, y]: object, colour, state
            named = np.vectorize(IDX_TO_OBJECT.get)(cells[..., 0])
            [door] = np.argwhere(named == "door")
            assert found["door"] == {index: name for name, index in STATE_TO_IDX.items()}[cells[tuple(door)][2]]
            assert (found["agent_x"], found["agent_y"]) == tuple(base.agent_pos)
            assert found["direction"] == ("right", "down", "left", "up")[base.agent_dir]
            keys = np.argwhere(named == "key").tolist()
            assert [[found["key_x"], found["key_y"]]] == (keys or [list(base.agent_pos)])
            assert found["carrying"] == ("nothing" if keys else "key")
            seen |= {found["door"], found["carrying"], found["direction"]}
            _, _, ended, cut, _ = env.step(env.action_space.sample())
            if ended or cut:
                break
    [door] = [each for each in env.unwrapped.grid.grid if each is not None and each.type == "door"]
    for door.is_open, door.is_locked, name in [
        (True, False, "open"),
        (False, False, "closed"),
        (False, True, "locked"),
    ]:
        assert known_labels(env)["door"] == name
    assert {"right", "down", "left", "up", "locked", "nothing"} <= seen


CLASSIC = ("CartPole-v1", "Pendulum-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Acrobot-v1")
WRAPPED = {
    "bare": lambda env: env,
    "pixels": gymnasium.wrappers.AddRenderObservation,
    "scaled": lambda env: gymnasium.wrappers.TransformObservation(env, lambda seen: 10 * seen, None),
    "stacked": lambda env: gymnasium.wrappers.FrameStackObservation(env, 3),
}


@pytest.mark.parametrize("name", CLASSIC)
@pytest.mark.parametrize("wrapped", WRAPPED)
def test_the_state_of_classic_control_is_the_observation_whatever_wrappers_make_of_it(name, wrapped):
    bare, env = gymnasium.make(name), WRAPPED[wrapped](gymnasium.make(name, render_mode="rgb_array"))
    observation, _ = bare.reset(seed=0)
    env.reset(seed=0)
    bare.action_space.seed(0)
    for _ in range(4):
        found = known_labels(env)
        assert list(found.values()) == observation.tolist()
        assert tuple(found) == OBSERVED[type(env.unwrapped).__name__]
        action = bare.action_space.sample()
        observation, *_ = bare.step(action)
        env.step(action)


def test_angles_are_known_by_cosine_and_sine():
    env = gymnasium.make("Pendulum-v1")
    env.reset(seed=0)
    angle, velocity = env.unwrapped.state
    expected = {"angle_cos": np.cos(angle), "angle_sin": np.sin(angle), "angular_velocity": velocity}
    assert known_labels(env) == pytest.approx(expected, abs=1e-6)


def test_of_others_nothing_is_known():
    env = Silent()
    env.reset(seed=0)
    assert known_labels(env) is None
