"""Make an environment by its name, and seed it by lane."""

import contextlib
import difflib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from typing import Any

import gymnasium

from manicap.core.errors import UserError
from manicap.core.ranges import shown
from manicap.core.registry import import_plugin, is_plugin, require_allowed
from manicap.core.seeding import stream_seed
from manicap.environments.config import LOCAL, RecordConfig

Environment = gymnasium.Env[Any, Any]

PACKAGES = {
    "MiniGrid": "minigrid",
    "BabyAI": "minigrid",
    "ALE/": "ale_py",
    "MiniWorld": "miniworld",
    "highway": "highway_env",
}
"""Packages that register environments on import, by the beginning of the environments' names."""
NUM_NEAREST = 5


@dataclass(frozen=True)
class OwnFunctions:
    """Functions given in Python that no other process can import."""

    env: Callable[..., Any] | None = None
    labels: Callable[..., Any] | None = None
    policy: Callable[..., Any] | None = None


NONE_OWN = OwnFunctions()


class users_code:
    """`with users_code("step() of my-env", "at step 3"):` reports what the user's code raises in one sentence.

    The author of that code must fix it. This is a class because three of them are entered in every step of play.
    """

    __slots__ = ("_place", "_what")

    def __init__(self, what: str, place: str) -> None:
        self._what, self._place = what, place

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, Exception | SystemExit) or isinstance(error, UserError | MemoryError):
            return
        message = " ".join(str(error).split())
        sentence = f"{self._what} failed {self._place}: {type(error).__name__}{': ' if message else ''}{message}"
        raise UserError(sentence) from error


def make_environment(config: RecordConfig, own: OwnFunctions) -> Environment:
    """A new environment; with frames `render` it renders arrays."""
    wanted = {"render_mode": "rgb_array"} if config.frames == "render" else {}
    keywords = {**wanted, **config.keywords}
    maker = own.env or _maker(config.env)
    with users_code(config.env, "to be made"):
        if maker is None:
            made: Any = _make_registered(config.env, keywords)
        else:
            made = _made(maker, keywords, config.keywords)
    if not isinstance(made, gymnasium.Env):
        raise UserError(f"{config.env} must make a gymnasium.Env, and returned {shown(made)}")
    if config.frames == "render" and made.render_mode != "rgb_array":
        raise UserError(
            f"{config.env} renders {made.render_mode or 'nothing'}: make it with render_mode='rgb_array', or take"
            " frames from the observation (frames 'observation')"
        )
    return made


def lane_seed(config: RecordConfig, lane: int, stream: str) -> int:
    """A seed below 2^31, which every environment accepts."""
    return stream_seed(config.seed, "record", stream, config.purpose, lane) % 2**31


def package_versions(env: Environment) -> dict[str, str]:
    """Versions of the installed package that an environment comes from; empty for a script."""
    module = type(env.unwrapped).__module__.partition(".")[0]
    try:
        return {name: version(name) for name in _distributions().get(module, ())}
    except PackageNotFoundError:
        return {}


@cache
def _distributions() -> Mapping[str, list[str]]:
    """Installed packages by the names of their modules; reading them takes a tenth of a second."""
    return packages_distributions()


def _maker(name: str) -> Callable[..., Any] | None:
    """The function that `package.module:maker` names; None for the name of a registered environment."""
    if name.startswith(LOCAL):
        raise UserError(f"{name} was made by a function of the process that recorded it: record it in Python again")
    if not is_plugin(name):
        return None
    if not name.partition(":")[2].replace(".", "_").isidentifier():  # gymnasium's package:Name-v0
        require_allowed(name, "environment")
        return None
    found = import_plugin(name, "environment")
    if not callable(found):
        raise UserError(f"{name} is not a function that makes an environment, but {found!r}")
    maker: Callable[..., Any] = found
    return maker


def _make_registered(name: str, keywords: dict[str, Any]) -> Environment:
    _import_package(name)
    known = name.rpartition(":")[2] in gymnasium.registry
    if not known and ":" not in name:
        raise _unknown(name)
    try:
        return gymnasium.make(name, disable_env_checker=True, **keywords)
    except (ModuleNotFoundError, gymnasium.error.DependencyNotInstalled) as error:
        raise UserError(f"{name} needs a package that is not installed: {error}") from error
    except gymnasium.error.UnregisteredEnv as error:
        raise _unknown(name) from error


def _import_package(name: str) -> None:
    package = next(
        (package for beginning, package in PACKAGES.items() if name.lower().startswith(beginning.lower())), None
    )
    if package is None or name in gymnasium.registry:
        return
    try:
        import_module(package)
    except ImportError as error:
        install = "'manicap[environments]'" if package == "minigrid" else package.replace("_", "-")
        raise UserError(f"{name} needs the package {package}: pip install {install} ({error})") from None


def _unknown(name: str) -> UserError:
    if Path(name).is_dir():
        return UserError(f"there is no store in the directory {name}: 'manicap data list' shows where there are some")
    if name.count("/") > 1 or name.startswith((".", "/")):  # registered names have at most one slash: namespace/name
        return UserError(f"there is no store at {name}: 'manicap data list' shows those that there are")
    by_lower = {known.lower(): known for known in gymnasium.registry}
    nearest = difflib.get_close_matches(name.lower(), by_lower, n=NUM_NEAREST, cutoff=0.5)
    naming = "an environment of a package is named package:Name-v0, a function of yours package.module:maker"
    hint = f"did you mean {', '.join(by_lower[each] for each in nearest)}? ({naming})" if nearest else naming
    return UserError(f"unknown environment {name!r}; {hint}")


def _made(maker: Callable[..., Any], keywords: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
    """What a function makes of the keywords if it names `render_mode`, else of the user's own.

    A function of any keywords (`**options`) may pass a render mode on, or give one itself: it is asked for one if what
    it made has none.
    """
    try:
        parameters = inspect.signature(maker).parameters
    except (TypeError, ValueError):
        return maker(**given)
    if "render_mode" in parameters:
        return maker(**keywords)
    made = maker(**given)
    takes_any = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    if keywords == given or not takes_any or not isinstance(made, gymnasium.Env) or made.render_mode is not None:
        return made
    with contextlib.suppress(TypeError):  # it need not pass every keyword on
        rendering = maker(**keywords)
        made.close()
        return rendering
    return made
