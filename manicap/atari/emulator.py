"""One seeded lane of the Arcade Learning Environment, preprocessed as AtariARI prescribes.

Reset:  1 to 30 raw no-op frames after a new game; after a lost life, one no-op step instead. Then, if the
        game has a fire button, step 1 (fire) and step 2 of the minimal action set.
Step:   one action for 4 raw frames; the frame is the maximum of the last two gray screens; the RAM is read after
        the last one. No sticky actions. A lost life ends the episode.

Screens are read as palette indices, from which gray and colour follow. Grayscale is ALE's own luminance, taken before
the maximum (as in gymnasium's AtariPreprocessing), whereas the 2019 code took the maximum in RGB and then OpenCV's
weights: positions are the same, some shades differ by a few levels.
"""

from pathlib import Path

import numpy as np
from ale_py import Action, ALEInterface, LoggerMode, roms
from numpy.typing import NDArray

from manicap.atari.games import Game
from manicap.atari.palette import gray_maximum
from manicap.core.errors import UserError
from manicap.core.seeding import numpy_generator, stream_seed

FRAME_SHAPE = (210, 160)
RAM_SIZE = 128
FRAME_SKIP = 4
MAX_NOOP_FRAMES = 30
MAX_GAME_FRAMES = 108_000  # half an hour of play, the limit of gym's NoFrameskip-v4 environments

Bytes = NDArray[np.uint8]


def open_ale(game: Game, seed: int) -> ALEInterface:
    """ALE with the game's ROM loaded, seeded, without sticky actions."""
    path = roms.get_rom_path(game.name)
    # ALE terminates the interpreter on a ROM that it cannot read, so check before loading.
    if path is None or not Path(path).is_file() or not ALEInterface.isSupportedROM(path):
        raise UserError(f"ale-py has no readable ROM for {game.name!r} (looked at {path}); reinstall ale-py")
    ALEInterface.setLoggerMode(LoggerMode.Error)
    ale = ALEInterface()
    ale.setInt("random_seed", seed)
    ale.setFloat("repeat_action_probability", 0.0)
    ale.setInt("max_num_frames_per_episode", MAX_GAME_FRAMES)
    ale.loadROM(path)
    if ale.getScreenDims() != FRAME_SHAPE:
        raise UserError(f"{game.name} has a screen of {ale.getScreenDims()}, expected {FRAME_SHAPE}")
    return ale


class Lane:
    """A stream of lives of one game. Each step writes the new state into `screens` and `ram`.

    Everything random in lane i under seed s comes from the stream (s, game, purpose, i): what a lane plays
    does not depend on other lanes or on the process it runs in.
    """

    def __init__(self, game: Game, seed: int, lane: int, purpose: str = "pretrain", episodic_life: bool = True) -> None:
        """Without `episodic_life`, only the end of a game ends an episode, and nothing is fired after a lost life."""
        name = ("lane", game.name, purpose, lane)
        self.rng = numpy_generator(seed, *name)
        self.ale = open_ale(game, stream_seed(seed, *name, "ale") % 2**31)
        self.actions: list[Action] = self.ale.getMinimalActionSet()
        self.screens: Bytes = np.zeros((2, *FRAME_SHAPE), np.uint8)
        """Palette indices of the last two screens of a step."""
        self.ram: Bytes = np.zeros(RAM_SIZE, np.uint8)
        self.screens_at_end: Bytes = np.zeros_like(self.screens)
        """Screens of the step that ended the previous life."""
        self.ram_at_end: Bytes = np.zeros(RAM_SIZE, np.uint8)
        """RAM after the step that ended the previous life (the 2019 code pairs it with the next life's first frame)."""
        self.reward = 0
        """Of the last step, the sum over its raw frames."""
        self.game_over = False
        """Whether the last step ended the game, and not only a life."""
        self.truncated = False
        """Whether it did so because the game had lasted `MAX_GAME_FRAMES`."""
        self.lives = 0
        self._episodic_life = episodic_life
        self._has_fire = Action.FIRE in self.actions

    @property
    def frame(self) -> Bytes:
        """The gray frame uint8 [210, 160]."""
        return gray_maximum(self.screens)

    def random_action(self) -> int:
        """Uniform over 1 .. n-1 of the minimal set: the no-op is excluded, as in the benchmark."""
        return int(self.rng.integers(1, len(self.actions)))

    def reset(self) -> None:
        """Start a new game."""
        self._new_game()
        self._fire()

    def step(self, action: int) -> bool:
        """Play one step. True if it ended a life: `screens` and `ram` are then already the next life's first."""
        self.reward = self._skip_frames(self.actions[action])
        self.game_over = self.truncated = False
        if not self._life_ended():
            return False
        self.game_over, self.truncated = self.ale.game_over(), self.ale.game_truncated()
        self.screens_at_end[:], self.ram_at_end[:] = self.screens, self.ram
        self._next_life()
        self._fire()
        return True

    def _next_life(self) -> None:
        if self.ale.game_over():
            self._new_game()
        else:
            self._skip_frames(Action.NOOP)

    def _new_game(self) -> None:
        self.ale.reset_game()
        for _ in range(int(self.rng.integers(1, MAX_NOOP_FRAMES + 1))):
            self.ale.act(Action.NOOP)
            if self.ale.game_over():
                self.ale.reset_game()
        self.lives = self.ale.lives()
        self.ale.getScreen(self.screens[1])
        self.screens[0] = self.screens[1]
        self.ale.getRAM(self.ram)

    def _fire(self) -> None:
        if self._has_fire:
            for action in self.actions[1:3]:
                self._skip_frames(action)
                if self._life_ended():
                    self._next_life()
        self.lives = self.ale.lives()

    def _life_ended(self) -> bool:
        """Game over, or fewer lives than before (bonus lives only raise the count)."""
        lost = self._episodic_life and 0 < self.ale.lives() < self.lives
        self.lives = self.ale.lives()
        return lost or self.ale.game_over()

    def _skip_frames(self, action: Action) -> int:
        ale, reward = self.ale, 0
        for _ in range(FRAME_SKIP - 1):
            reward += ale.act(action)
        ale.getScreen(self.screens[0])
        reward += ale.act(action)
        ale.getScreen(self.screens[1])
        ale.getRAM(self.ram)
        return reward
