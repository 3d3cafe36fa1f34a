"""Environments as users write them: a good one, and one for each thing that can be wrong with it."""

import os
import signal
from pathlib import Path
from typing import ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces

DOORS = ("shut", "open", "ajar")


class Walk(gymnasium.Env):
    """A square on a field of 48 x 64 that actions move; an episode ends at the edge."""

    metadata: ClassVar = {"render_modes": ["rgb_array"]}
    action_space = spaces.Discrete(4, start=1)
    observation_space = spaces.Box(0, 255, (48, 64, 3), np.uint8)

    def __init__(self, render_mode=None, height=48, width=64):
        self.render_mode, self.height, self.width = render_mode, height, width

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.y = (int(value) for value in self.np_random.integers(5, 12, 2))
        self.time = 0
        return self._observation(), self._info()

    def step(self, action):
        assert action in self.action_space
        self.time += 1
        self.x += int(action == 1) - int(action == 2)
        self.y += int(action == 3) - int(action == 4)
        reward = float(action == 1) - float(action == 2)
        return self._observation(), reward, not (3 <= self.x < 14 and 3 <= self.y < 14), False, self._info()

    def render(self):
        image = np.zeros((self.height, self.width, 3), np.uint8)
        image[..., 1] = 3 * self.time % 256
        image[3 * self.y : 3 * self.y + 3, 3 * self.x : 3 * self.x + 3] = (250, 120, 30)
        return image

    def _observation(self):
        return self.render()

    def _info(self):
        speed = self.x / 10 - self.y
        return {"labels": {"x": self.x - 3, "door": DOORS[self.x * self.y % 3], "lit": self.x > 8, "speed": speed}}


class Silent(Walk):
    """Nothing is known about its state."""

    def _info(self):
        return {}


class Pushed(Silent):
    """Continuous actions, an observation vector, and an image in a dictionary."""

    action_space = spaces.Box(-1, 1, (2,), np.float32)

    def step(self, action):
        self.time += 1
        self.x, self.y = 8, 8
        return self._observation(), float(action[0]), False, self.time == 7, {}

    def _observation(self):
        return {"image": self.render().transpose(2, 0, 1), "state": np.array([self.x, self.time], np.float32)}


class Vector(Silent):
    """Its observation is its state."""

    def _observation(self):
        return np.array([self.x, self.y / 2, self.time], np.float32)


class Endless(Silent):
    def step(self, action):
        self.time += 1
        return self._observation(), 0, False, False, {}


class Gray(Walk):
    """Frames [H, W], or [H, W, 1]."""

    def __init__(self, render_mode=None, planes=0):
        super().__init__(render_mode)
        self.planes = planes

    def render(self):
        image = super().render()[..., 0]
        return image[..., None] if self.planes else image


class Canvas(Walk):
    """Draws into one array, which is its render and its observation; an episode has five frames."""

    def __init__(self, render_mode=None):
        super().__init__(render_mode)
        self.canvas = np.zeros((48, 64, 3), np.uint8)

    def step(self, action):
        self.time += 1
        return self._observation(), 0.0, False, self.time == 5, self._info()

    def render(self):
        self.canvas[:] = 10 * self.time
        return self.canvas

    def _info(self):
        return {"labels": {"time": self.time}}


class Shades(Endless):
    """Draws a shade per step from NumPy's global generator, which its constructor seeds; to see is the time."""

    action_space = spaces.Discrete(2)
    observation_space = spaces.Box(0, 1000, (1,), np.float32)

    def __init__(self, render_mode=None):
        super().__init__(render_mode)
        np.random.seed(0)  # noqa: NPY002

    def _observation(self):
        self.shade = np.random.randint(256)  # noqa: NPY002
        return np.array([self.time], np.float32)

    def render(self):
        return np.full((48, 64, 3), self.shade, np.uint8)


class Noise(Silent):
    """Frames that cannot be compressed: 9 KB each."""

    def render(self):
        return self.np_random.integers(0, 256, (48, 64, 3), np.uint8)


class Chatty(Endless):
    """Prints 2 KB per step; a pipe holds 64."""

    def step(self, action):
        print("moving " * 300)
        return super().step(action)


class Invisible(Walk):
    def render(self):
        return None


class Float(Walk):
    def render(self):
        return super().render() / 255


class Growing(Walk):
    """Renders another size after a reset."""

    def reset(self, *, seed=None, options=None):
        self.episode = getattr(self, "episode", -1) + 1
        return super().reset(seed=seed)

    def render(self):
        return np.zeros((48 + 2 * self.episode, 64, 3), np.uint8)


class Failing(Endless):
    """Raises at the given step, and prints where results are expected."""

    def __init__(self, render_mode=None, at=3):
        super().__init__(render_mode)
        self.at = at

    def step(self, action):
        print("done")
        if self.time == self.at:
            raise ZeroDivisionError("the\nwheel came off")
        return super().step(action)


class OldReset(Walk):
    """Resets as gym did before 0.26: an observation of two numbers is taken for an observation and an info."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.array([self.x, 0.5])


class Quitting(Walk):
    """Ends the program at its second step."""

    def step(self, action):
        if self.time:
            raise SystemExit("no licence")
        return super().step(action)


class Labelled(Endless):
    """Has the labels that `changes` gives for a step."""

    changes: ClassVar = {}

    def step(self, action):
        observation, reward, terminated, truncated, _ = super().step(action)
        return observation, reward, terminated, truncated, self._info()

    def _info(self):
        return {"labels": {"x": 1.5, "door": "open"} | self.changes.get(getattr(self, "time", 0), {})}


class NotANumber(Labelled):
    changes: ClassVar = {5: {"x": float("nan")}}


class OtherType(Labelled):
    changes: ClassVar = {4: {"x": 2}}


class OtherName(Labelled):
    changes: ClassVar = {3: {"z": 0}}


class Forgetful(Labelled):
    def _info(self):
        found = super()._info()
        return {"labels": {"x": 1.5}} if self.time == 6 else found


class Late(Labelled):
    """Has labels after a step, but not after a reset."""

    def reset(self, *, seed=None, options=None):
        observation, _ = super().reset(seed=seed)
        return observation, {}


class Listing(Labelled):
    changes: ClassVar = {0: {"x": [1, 2]}}


class ManyClasses(Labelled):
    def _info(self):
        return {"labels": {"name": f"{self.time}"}}


class Killer(Walk):
    """Kills the process that started this one and this one, in the third lane, unless the file is there."""

    made = 0

    def __init__(self, render_mode=None, file=""):
        super().__init__(render_mode)
        self.file, self.steps = Path(file), 0
        type(self).made += 1

    def step(self, action):
        self.steps += 1
        if self.made == 3 and self.steps == 200 and not self.file.exists():
            self.file.touch()
            os.kill(os.getppid(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)  # else it may finish the lane before it notices
        return super().step(action)


def make_walk(**options):
    return Walk("rgb_array", **options)


def make_walk_for_people():
    return Walk("human")


def make_blind(**options):
    """Takes any options, but no render mode."""
    return Walk(height=options.pop("height", 48), **{f"not_{name}": value for name, value in options.items()})


def not_an_environment():
    return 3


def position(env, observation, info):
    return {"y": env.unwrapped.y, "far": env.unwrapped.x > 9}


def square(env, observation, info):
    """Of Walk, in cells of three pixels."""
    return {"square_x": float(env.unwrapped.x), "square_y": float(env.unwrapped.y)}


def unlabelled(env, observation, info):
    raise KeyError("x")


def rightwards(observation):
    return np.int64(1)


def astray(observation):
    return 5


def agent(env, observation, info):
    """Of MiniGrid."""
    return {
        "x": int(env.unwrapped.agent_pos[0]),
        "heading": ["east", "south", "west", "north"][env.unwrapped.agent_dir],
    }


def far(env, observation, info):
    """Labels of Walk: whole numbers that lie far apart."""
    return {"far": 300 * (env.unwrapped.x - 3)}
