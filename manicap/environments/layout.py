"""How the rows of a recording are stored, determined from the first steps of its first lane."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from manicap.environments.config import RecordConfig
from manicap.environments.labels import Column, LabelEncoder, choose_columns, row_dtype
from manicap.environments.making import OwnFunctions, package_versions
from manicap.environments.pictures import check_size
from manicap.environments.player import Player
from manicap.environments.policies import action_dtype
from manicap.play.codec import compressor

NUM_TRIED = 16
"""Steps from which the size of the store is estimated."""


@dataclass(frozen=True)
class Layout:
    """What is the same in all lanes."""

    frame_shape: tuple[int, ...]
    """[H, W] or [H, W, 3]"""
    columns: tuple[Column, ...]
    action_type: str | None
    """NumPy type; None if there are no actions, which only frames recorded elsewhere lack."""
    action_shape: tuple[int, ...] = ()
    first_action: int = 0
    """The smallest of the discrete actions."""
    has_rewards: bool = True

    @property
    def label_dtype(self) -> np.dtype[Any]:
        return row_dtype(self.columns)

    def as_dict(self) -> dict[str, Any]:
        return {
            "frame_shape": list(self.frame_shape),
            "columns": [column.as_dict() for column in self.columns],
            "action_type": self.action_type,
            "action_shape": list(self.action_shape),
            "first_action": self.first_action,
            "has_rewards": self.has_rewards,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Layout":
        return cls(
            tuple(map(int, values["frame_shape"])),
            tuple(map(Column.from_dict, values["columns"])),
            values["action_type"],
            tuple(map(int, values["action_shape"])),
            int(values["first_action"]),
            bool(values["has_rewards"]),
        )


@dataclass(frozen=True)
class Survey:
    layout: Layout
    row_bytes: int
    """Estimated size of one row in all files."""
    versions: dict[str, str]


def survey(config: RecordConfig, own: OwnFunctions) -> Survey:
    """Begin the first lane to see what there is to store. Mistakes show here, before any process is started."""
    with Player(config, 0, own) as player:
        frame, labels = player.frame(), player.labels()
        check_size(frame, config)
        columns = choose_columns(labels or {}, config)
        encoder = LabelEncoder(columns)
        encoder.encode(labels, player.place)
        dtype, shape = action_dtype(player.env.action_space, config.env)
        layout = Layout(frame.shape, columns, dtype.str, shape, int(getattr(player.env.action_space, "start", 0)))
        compress, sizes = compressor(), list[int]()
        for _ in range(min(NUM_TRIED, config.lane_steps(0) - 1)):
            sizes.append(len(compress(frame)))
            player.play()
            frame = player.frame()
            encoder.encode(player.labels(), player.place)
        sizes.append(len(compress(np.ascontiguousarray(frame))))
        other = 32 + layout.label_dtype.itemsize + dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        return Survey(layout, 2 * max(sizes) + other, package_versions(player.env))
