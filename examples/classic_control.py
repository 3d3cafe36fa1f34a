"""CartPole and Pendulum from pixels. Positions are in one frame; velocities need several.

pip install 'manicap[environments]'
python examples/classic_control.py --env CartPole-v1 --stacks 4
"""

from pathlib import Path

import tyro
from table import print_table

import manicap


def main(
    env: str = "CartPole-v1",
    stacks: tuple[int, ...] = (1, 4),
    collect_steps: int = 10_000,
    probe_steps: int = 8_000,
    max_steps: int = 300,
    methods: tuple[str, ...] = ("st-dim", "dim-c+"),
    probe: str = "ridge",
    data_dir: Path = Path("data"),
    runs_dir: Path = Path("runs"),
) -> None:
    for stack in stacks:
        results = []
        for method in methods:
            results += manicap.run(
                method,
                env=env,
                stack=stack,
                colour=False,
                frame_size=(64, 64),
                collect_steps=collect_steps,
                max_steps=max_steps,
                evaluation={"probe_input": "backbone", "probe_steps": probe_steps, "probe": probe},
                data_dir=data_dir,
                runs_dir=runs_dir,
            )
        print_table(f"{env}, 64 x 64, gray, {stack} frame{'s'[: stack > 1]}", results)


if __name__ == "__main__":
    tyro.cli(main)
