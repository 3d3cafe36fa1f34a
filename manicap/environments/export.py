"""One episode of an environment as a film, or as arrays that `manicap record --from` imports:

    frames          uint8 [n, H, W], in colour [n, H, W, 3]
    episode         int64 [n]      the number of the episode
    actions         int64 [n], or float32 [n, A]; played from the frame
    rewards         float64 [n]    reward of the action
    ended           uint8 [n]      1: the action terminated the episode; 2: it was truncated; 3: the recording ends here
    label_...       [n]            each state variable in its own units; the names of classes as text

Actions and rewards that were not recorded are absent.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from manicap.environments.store import EnvironmentStore
from manicap.play.export import Exportable
from manicap.play.store import Rows


def exportable_episodes(store: EnvironmentStore) -> Exportable:
    remedy = "record it again in colour"
    return Exportable(store, lambda rows: _arrays(store, rows), "episode", "episodes", remedy)


def _arrays(store: EnvironmentStore, rows: Rows) -> dict[str, NDArray[Any]]:
    number = np.searchsorted(store.episodes["start"], rows, side="right") - 1
    found: dict[str, NDArray[Any]] = {"episode": number, "ended": store.steps["ended"][rows]}
    if store.layout.action_type is not None:
        found["actions"] = store.actions[rows]
    if store.layout.has_rewards:
        found["rewards"] = store.rewards[rows]
    return found | {f"label_{name}": values for name, values in store.given_labels(rows).items()}
