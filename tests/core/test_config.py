from dataclasses import dataclass, field
from typing import Literal

import pytest

from manicap.core.config import config_hash, from_dict, read_toml, to_dict, write_toml
from manicap.core.errors import UserError


@dataclass(frozen=True)
class Inner:
    rate: float = 0.5
    names: tuple[str, ...] = ("a", "b")


@dataclass(frozen=True)
class Outer:
    game: str
    mode: Literal["fast", "slow"] = "fast"
    steps: int = 10
    limit: int | None = None
    inner: Inner = field(default_factory=Inner)

    def problems(self):
        return [] if self.steps > 0 else [f"steps must be positive, got {self.steps}"]


def test_a_config_survives_toml(tmp_path):
    config = Outer("pong", mode="slow", limit=3, inner=Inner(rate=1e-4, names=("x",)))
    write_toml(tmp_path / "c.toml", config)
    assert read_toml(tmp_path / "c.toml", Outer) == config


def test_none_survives_toml_by_absence(tmp_path):
    write_toml(tmp_path / "c.toml", Outer("pong"))
    assert "limit" not in (tmp_path / "c.toml").read_text()
    assert read_toml(tmp_path / "c.toml", Outer).limit is None


def test_a_none_that_is_not_the_default_survives_a_file(tmp_path):
    @dataclass(frozen=True)
    class Patient:
        patience: int | None = 15
        name: str | None = "none"

    write_toml(tmp_path / "c.toml", Patient(patience=None))
    assert read_toml(tmp_path / "c.toml", Patient) == Patient(patience=None)
    assert read_toml(tmp_path / "c.toml", Patient).name == "none"  # text stays text
    assert config_hash(Patient(patience=None)) != config_hash(Patient())
    with pytest.raises(UserError, match="patience must be int, got 'never'"):
        from_dict(Patient, {"patience": "never"})


def test_the_hash_depends_on_values_and_not_on_the_order_of_keys():
    one = from_dict(Outer, {"game": "pong", "steps": 3})
    assert config_hash(one) == config_hash(from_dict(Outer, {"steps": 3, "game": "pong"}))
    assert config_hash(one) != config_hash(Outer("pong", steps=4))
    # The sha256 of the canonical JSON written out by hand.
    import hashlib

    canonical = '{"game":"pong","inner":{"names":["a","b"],"rate":0.5},"mode":"fast","steps":3}'
    assert config_hash(one) == hashlib.sha256(canonical.encode()).hexdigest()[:12]


def test_all_problems_are_shown_together():
    with pytest.raises(UserError) as caught:
        from_dict(Outer, {"gaem": "pong", "mode": "fats", "steps": "ten", "inner": {"rat": 1.0}})
    text = str(caught.value)
    for part in ("'gaem'", "did you mean 'game'", "game is required", "'fats'", "steps must be int", "inner.rate"):
        assert part in text


def test_own_problems_are_user_errors():
    with pytest.raises(UserError, match="steps must be positive, got 0"):
        from_dict(Outer, {"game": "pong", "steps": 0})


def test_an_integer_is_taken_where_a_float_is_asked_for():
    assert to_dict(from_dict(Outer, {"game": "p", "inner": {"rate": 1}}))["inner"]["rate"] == 1.0


def test_broken_toml_names_the_file(tmp_path):
    (tmp_path / "c.toml").write_text("game = ")
    with pytest.raises(UserError, match="c.toml is not valid TOML"):
        read_toml(tmp_path / "c.toml", Outer)
    with pytest.raises(UserError, match="there is no config file"):
        read_toml(tmp_path / "absent.toml", Outer)
