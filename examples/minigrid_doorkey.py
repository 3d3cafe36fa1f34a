"""MiniGrid from pixels: where the agent is, which way it looks, what it carries, whether the door is open.

    pip install 'manicap[environments]'
    python examples/minigrid_doorkey.py

Every episode has another maze. Episodes are cut after 100 steps, so that many mazes are seen.
"""

from pathlib import Path

import tyro
from table import print_table

import manicap


def main(
    collect_steps: int = 10_000,
    probe_steps: int = 8_000,
    max_steps: int = 300,
    methods: tuple[str, ...] = ("st-dim", "dim-c+"),
    probe: str = "ridge",
    data_dir: Path = Path("data"),
    runs_dir: Path = Path("runs"),
) -> None:
    results = []
    for method in methods:
        results += manicap.run(
            method,
            env="MiniGrid-DoorKey-8x8-v0",
            frame_size=(64, 64),
            episode_limit=100,
            collect_steps=collect_steps,
            max_steps=max_steps,
            evaluation={"probe_input": "backbone", "probe_steps": probe_steps, "probe": probe},
            data_dir=data_dir,
            runs_dir=runs_dir,
        )
    print_table("MiniGrid-DoorKey-8x8-v0, 64 x 64", results)


if __name__ == "__main__":
    tyro.cli(main)
