"""The three annotation sets and the labels they define."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cache

from manicap.atari.annotations.corrections import CORRECTIONS
from manicap.atari.annotations.table import ARI_2020
from manicap.atari.annotations.table_2019 import CHANGES_2019, MISSING_IN_2019
from manicap.atari.annotations.variables import Change, Variable
from manicap.atari.emulator import RAM_SIZE, Bytes
from manicap.atari.games import Game
from manicap.core.errors import UserError, unknown_choice
from manicap.play.categories import CATEGORIES

ANNOTATION_SETS: tuple[str, ...] = ("ari-2019", "ari-2020", "corrected")

_CHANGES: dict[str, dict[str, tuple[Change, ...]]] = {
    "ari-2019": CHANGES_2019,
    "ari-2020": {},
    "corrected": CORRECTIONS,
}


def sets_with(game: Game) -> tuple[str, ...]:
    """The annotation sets that include the game."""
    return tuple(name for name in ANNOTATION_SETS if name != "ari-2019" or game.name not in MISSING_IN_2019)


def annotations(game: Game, set_name: str) -> tuple[Variable, ...]:
    """The game's variables in the named set."""
    if set_name not in ANNOTATION_SETS:
        raise unknown_choice("annotation set", set_name, ANNOTATION_SETS)
    if set_name not in sets_with(game):
        raise UserError(
            f"{game.name} is not annotated in {set_name!r}; the sets that have it are {', '.join(sets_with(game))}"
        )
    return _variables(game.name, set_name)


def changes(game: Game, set_name: str) -> tuple[Change, ...]:
    """How the game's table in the named set differs from `ari-2020`, and why."""
    annotations(game, set_name)
    return _CHANGES[set_name].get(game.name, ())


def categories(game: Game, set_name: str) -> dict[str, tuple[str, ...]]:
    """The names of each category's variables, for the categories that the game has, in order."""
    variables = annotations(game, set_name)
    names = {category: tuple(v.name for v in variables if category in v.categories) for category in CATEGORIES}
    return {category: found for category, found in names.items() if found}


def labels(ram: Bytes, game: Game, set_name: str, names: Iterable[str] | None = None) -> dict[str, Bytes]:
    """Labels uint8 [...] from whole RAMs uint8 [..., 128], by variable: all of them, or those named."""
    if ram.shape[-1:] != (RAM_SIZE,) or ram.dtype != "uint8":
        raise ValueError(f"labels needs RAMs uint8 [..., {RAM_SIZE}], got {ram.dtype} {list(ram.shape)}")
    variables = {variable.name: variable for variable in annotations(game, set_name)}
    wanted = list(variables) if names is None else list(names)
    for name in wanted:
        if name not in variables:
            raise unknown_choice(f"{game.name} variable", name, variables)
    return {name: variables[name].labels(ram) for name in wanted}


@cache
def _variables(game: str, set_name: str) -> tuple[Variable, ...]:
    return _apply(ARI_2020[game], _CHANGES[set_name].get(game, ()))


def _apply(base: tuple[Variable, ...], changes: tuple[Change, ...]) -> tuple[Variable, ...]:
    """The base table after the changes: existing variables keep their place, new ones follow."""
    table = {variable.name: variable for variable in base}
    for change in changes:
        touched = {*change.drop, *change.rename, *(set(change.recategorize) - set(change.rename.values()))}
        assert touched <= set(table), f"no such variables to change: {touched - set(table)}"
        changed: dict[str, Variable] = {}
        for name, variable in table.items():
            if name in change.drop:
                continue
            new = change.rename.get(name, name)
            if new != name:
                variable = replace(variable, name=new, why=change.why)
            if new in change.recategorize:
                variable = replace(variable, categories=(change.recategorize[new],), why=change.why)
            changed[new] = variable
        for variable in change.put:
            changed[variable.name] = replace(variable, why=change.why)
        table = changed
    return tuple(table.values())
