"""What an annotation is: a named quantity of the game's state, its place in RAM, and its categories."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from manicap.atari.emulator import Bytes
from manicap.play.categories import AGENT, DISPLAY, MISC, OTHER, SMALL


@dataclass(frozen=True)
class Variable:
    """One labelled quantity of a game."""

    name: str
    addresses: tuple[int, ...]
    """The RAM bytes that it is read from. Without `decode` there is only one, and the label is that byte."""
    categories: tuple[str, ...]
    """If empty, the variable is listed but not counted in any category's mean."""
    why: str = ""
    """Why it differs from the `ari-2020` table; empty if it does not."""
    decode: Callable[[Bytes], Bytes] | None = None
    """From whole RAMs uint8 [..., 128] to the labels uint8 [...]."""

    def labels(self, ram: Bytes) -> Bytes:
        if self.decode is not None:
            return self.decode(ram)
        return ram[..., self.addresses[0]]


@dataclass(frozen=True)
class Change:
    """One difference from the `ari-2020` table of a game, and why."""

    why: str
    drop: tuple[str, ...] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    """From the name in `ari-2020` to the name here."""
    recategorize: Mapping[str, str] = field(default_factory=dict)
    """From the name here to its category here."""
    put: tuple[Variable, ...] = ()
    """New variables, or replacements for those of the same name."""


@dataclass(frozen=True)
class Bits:
    """Some bits of a byte that packs several quantities."""

    address: int
    mask: int
    shift: int = 0

    def __call__(self, ram: Bytes) -> Bytes:
        return ram[..., self.address] >> np.uint8(self.shift) & np.uint8(self.mask)


@dataclass(frozen=True)
class Below:
    """1 while the byte is below a bound, else 0."""

    address: int
    bound: int

    def __call__(self, ram: Bytes) -> Bytes:
        return (ram[..., self.address] < self.bound).astype(np.uint8)


@dataclass(frozen=True)
class Switch:
    """One byte while the selecting byte is 0, another otherwise."""

    selector: int
    when_zero: int
    otherwise: int

    def __call__(self, ram: Bytes) -> Bytes:
        return np.where(ram[..., self.selector] == 0, ram[..., self.when_zero], ram[..., self.otherwise])


@dataclass(frozen=True)
class SlotOf:
    """The byte of the first slot whose type byte is one of `kinds`; 0 while no slot holds that kind."""

    kinds: tuple[int, ...]
    types: tuple[int, ...]
    values: tuple[int, ...]

    def __call__(self, ram: Bytes) -> Bytes:
        labels = np.zeros(ram.shape[:-1], np.uint8)
        for kind, value in reversed(list(zip(self.types, self.values, strict=True))):
            labels = np.where(np.isin(ram[..., kind], self.kinds), ram[..., value], labels)
        return labels


# The vocabulary of the tables: a category, then names and addresses.


def within(categories: tuple[str, ...], /, **addresses: int) -> tuple[Variable, ...]:
    return tuple(Variable(name, (address,), categories) for name, address in addresses.items())


def agent(**addresses: int) -> tuple[Variable, ...]:
    return within((AGENT,), **addresses)


def small(**addresses: int) -> tuple[Variable, ...]:
    return within((SMALL,), **addresses)


def other(**addresses: int) -> tuple[Variable, ...]:
    return within((OTHER,), **addresses)


def display(**addresses: int) -> tuple[Variable, ...]:
    return within((DISPLAY,), **addresses)


def misc(**addresses: int) -> tuple[Variable, ...]:
    return within((MISC,), **addresses)


def unsorted(**addresses: int) -> tuple[Variable, ...]:
    """In no category."""
    return within((), **addresses)


def slots(stem: str, addresses: Iterable[int], first: int = 0) -> dict[str, int]:
    """`slots("enemy_x", range(84, 88))` is enemy_x_0 at 84 to enemy_x_3 at 87."""
    return {f"{stem}_{index}": address for index, address in enumerate(addresses, first)}


def decoded(category: str, name: str, addresses: tuple[int, ...], decode: Callable[[Bytes], Bytes]) -> Variable:
    return Variable(name, addresses, (category,), decode=decode)
