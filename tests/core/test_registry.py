"""Things by name: ours, those of installed packages, and those that the caller named; nothing else is imported."""

import sys

import pytest

from manicap.core import registry
from manicap.core.errors import UserError
from manicap.core.registry import Registry, allow_plugins, allowed_plugins


class Shape:
    pass


class Circle(Shape):
    pass


SOURCE = """
from tests.core.test_registry import Shape

class Square(Shape):
    pass

class Outer:
    class Inner(Shape):
        pass

NO_SHAPE = 3
"""


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """Nothing named yet, and entry points read anew before and after."""
    monkeypatch.setattr(registry, "_allowed", set())
    registry._entry_points.cache_clear()
    registry._load.cache_clear()
    yield
    registry._entry_points.cache_clear()
    registry._load.cache_clear()


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package with a module of shapes, which registers one of them."""
    (tmp_path / "foreign_shapes.py").write_text(SOURCE)
    metadata = tmp_path / "foreign_shapes-0.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: foreign-shapes\nVersion: 0.1\n")
    (metadata / "entry_points.txt").write_text("[manicap.shapes]\nsquare = foreign_shapes:Square\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "foreign_shapes"
    sys.modules.pop("foreign_shapes", None)


@pytest.fixture
def shapes():
    return Registry("shape", Shape, {"circle": Circle, "later": "tests.core.test_registry:Circle"})


def test_ours_are_found_as_they_are_or_loaded_on_first_use(shapes):
    assert shapes["circle"] is shapes["later"] is Circle
    assert list(shapes) == ["circle", "later"]
    assert len(shapes) == 2
    assert "circle" in shapes
    assert "square" not in shapes
    with pytest.raises(UserError, match="unknown shape 'circel'; did you mean 'circle'"):
        shapes["circel"]


def test_what_an_installed_package_registers_has_a_short_name(package, shapes):
    assert list(shapes) == ["circle", "later", "square"]
    assert "foreign_shapes" not in sys.modules  # listing imports nothing
    assert issubclass(shapes["square"], Shape)


def test_a_path_is_imported_only_if_the_caller_named_it(package, shapes):
    path = f"{package}:Square"
    with pytest.raises(UserError, match=rf"the shape {path} is not part of manicap, .* name it yourself \(--plugin"):
        shapes[path]
    assert package not in sys.modules
    assert path not in shapes
    allow_plugins(["circle", path])
    assert allowed_plugins() == (path,)
    assert path in shapes
    assert issubclass(shapes[path], Shape)
    allow_plugins([f"{package}:Outer.Inner"])
    assert shapes[f"{package}:Outer.Inner"].__qualname__ == "Outer.Inner"


@pytest.mark.parametrize("name", ["a b:C", ":C", "a:", "a:b:c", "os;x:y", "../a:B", "a.b:1", "a:b\n"])
def test_what_is_no_path_of_a_thing_is_refused(name):
    with pytest.raises(UserError, match=r"a plug-in must be given as package\.module:Name, got"):
        allow_plugins([name])
    assert allowed_plugins() == ()


def test_a_plugin_is_named_and_not_given():
    with pytest.raises(UserError, match="named by its import path, such as 'package.module:Name', got <function"):
        allow_plugins([test_a_plugin_is_named_and_not_given])


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("foreign_shapes:NO_SHAPE", "foreign_shapes:NO_SHAPE is not a shape: 3 is not a Shape"),
        ("foreign_shapes:Outer", "is not a shape: .* is not a Shape"),
        ("foreign_shapes:Outr", "cannot import foreign_shapes:Outr: unknown name 'Outr'; did you mean 'Outer'"),
        ("no_such_package:Thing", "No module named 'no_such_package'; is its package installed"),
    ],
)
def test_what_is_no_such_thing_is_told(path, sentence, package, shapes):
    allow_plugins([path])
    with pytest.raises(UserError, match=sentence):
        shapes[path]
