"""Labels of recorded rows: exact, counted from 0, in their own units where these differ."""

import numpy as np
import pytest

from manicap.core.errors import UserError
from manicap.environments.labelling import RecordedLabels, bin_edges
from manicap.environments.labels import Column
from manicap.environments.store import EPISODE
from manicap.play.store import PlayStore, StateVariable
from tests.environments import worlds

COLUMNS = (
    Column("x", "int", "place", ("agent_localization",)),
    Column("count", "int", "number"),
    Column("room", "int", "class"),
    Column("lit", "bool", "class"),
    Column("door", "str", "class", names=("ajar", "open", "shut")),
    Column("speed", "float", "number"),
)
ROWS = [
    (-3, 0, 70, 0, 2, 0.5),
    (-1, 2, 10, 1, 0, -1.5),
    (4, 5, 70, 1, 1, 2.5),
    (-3, 1, 40, 0, 2, 0.5),
]


@pytest.fixture
def recorded():
    table = np.array(ROWS, np.dtype([(column.name, column.dtype) for column in COLUMNS]))
    # Lane 0: rows 0 and 1, lane 1: rows 2 and 3, each two episodes of one row.
    episodes = np.array([(0, 0, 1), (0, 1, 1), (1, 2, 1), (1, 3, 1)], EPISODE)
    return RecordedLabels(COLUMNS, table, episodes)


def test_labels_count_from_0(recorded):
    found = recorded.labels(np.arange(4))
    assert {name: values.tolist() for name, values in found.items()} == {
        "x": [0, 2, 7, 0],
        "count": [0, 2, 5, 1],
        "room": [2, 0, 2, 1],
        "lit": [0, 1, 1, 0],
        "door": [2, 0, 1, 2],
        "speed": [1, 0, 2, 1],
    }
    assert list(recorded.labels(np.array([3, 0]), ["room"])) == ["room"]
    assert recorded.labels(np.array([3, 0]), ["room"])["room"].tolist() == [1, 2]


def test_the_first_frame_of_an_episode_may_have_the_labels_of_the_row_before(recorded):
    # Row 1 begins an episode after row 0, row 3 after row 2; rows 0 and 2 begin lanes.
    assert recorded.labels(np.arange(4), ["count"], stale_first=True)["count"].tolist() == [0, 0, 5, 5]


def test_values_are_in_own_units_where_a_label_is_not(recorded):
    assert recorded.values(np.arange(4), ["count", "room", "door"]) is None
    np.testing.assert_array_equal(
        recorded.values(np.array([2, 1]), ["x", "room", "speed"]), [[4, 2, 2.5], [-1, 0, -1.5]]
    )


def test_whole_numbers_of_a_wide_range_are_binned_as_real_ones_are():
    column = Column("time", "int", "number")
    table = np.array([(10**12 + 5000 * row,) for row in range(20)], [("time", "<i8")])
    labels = RecordedLabels((column,), table, np.array([(0, 0, 20)], EPISODE))
    assert labels.labels(np.arange(20))["time"].tolist() == [row // 2 for row in range(20)]
    assert labels.values(np.array([3]), ["time"]).tolist() == [[10**12 + 15000]]
    narrow = RecordedLabels((column,), np.array([(0,), (4095,)], [("time", "<i8")]), np.array([(0, 0, 2)], EPISODE))
    assert narrow.labels(np.arange(2))["time"].tolist() == [0, 4095]


def test_whole_numbers_further_apart_than_an_int64_holds_are_binned():
    # Their range, 3 * 2^62, is more than 2^63 - 1.
    values = [-3 * 2**61, 3 * 2**61] * 10
    table = np.array([(value,) for value in values], [("id", "<i8")])
    labels = RecordedLabels((Column("id", "int", "number"),), table, np.array([(0, 0, 20)], EPISODE))
    assert labels.labels(np.arange(20))["id"].tolist() == [0, 1] * 10
    assert labels.values(np.array([0, 1]), ["id"]).tolist() == [[-3.0 * 2**61], [3.0 * 2**61]]


def test_names_of_classes(recorded):
    assert recorded.class_names("door") == ("ajar", "open", "shut")
    assert recorded.class_names("lit") == ("False", "True")
    assert recorded.class_names("room") == ("10", "40", "70")
    assert recorded.class_names("x") == ()
    with pytest.raises(UserError, match="unknown state variable 'y'"):
        recorded.labels(np.arange(2), ["y"])


def test_bins_have_equal_frequencies_and_none_is_empty():
    values = np.random.default_rng(0).normal(size=1000)
    bins = np.searchsorted(bin_edges(values), values, side="right")
    assert np.abs(np.bincount(bins) - 100).max() <= 1
    assert len(np.bincount(bins)) == 10
    repeated = np.r_[np.zeros(900), np.arange(100) / 10]
    bins = np.searchsorted(bin_edges(repeated), repeated, side="right")
    assert np.bincount(bins).min() > 0
    assert len(bin_edges(np.full(5, 2.0))) == 0


def test_kinds_by_type_and_by_the_user(record_here):
    kinds = ("x:place", "lit:number")
    store: PlayStore = record_here("Walk", label_kinds=kinds, label_categories=("x:agent_localization",))
    assert store.variables == (
        StateVariable("x", "place", ("agent_localization",)),
        StateVariable("door", "class", ("state",)),
        StateVariable("lit", "number", ("state",)),
        StateVariable("speed", "number", ("state",)),
    )
    assert store.labelling("recorded").variables == store.variables
    assert store.labelling("recorded").name == "recorded"


def test_labels_of_a_function_and_of_a_vector(record_here):
    store = record_here("Silent", labels=worlds.position)
    assert [variable.kind for variable in store.variables] == ["number", "class"]
    store = record_here("Vector", labels="observation")
    assert [variable.name for variable in store.variables] == ["observation_0", "observation_1", "observation_2"]
    first = store.labelling().values(store.rows[:1], ["observation_0", "observation_1"])
    # The square is at (3x, 3y), 250 in red.
    row, column = np.argwhere(store.colour_frames(0)[..., 0] == 250)[0]
    assert first.tolist() == [[column / 3, row / 3 / 2]]


def test_a_store_without_labels_trains_but_is_not_probed(record_here):
    store = record_here("Silent")
    assert store.variables == ()
    assert "labels.npy" not in {path.name for path in store.path.iterdir()}
    with pytest.raises(UserError, match=r"was recorded without labels: put them into info\['labels'\]"):
        store.labelling("recorded")
    with pytest.raises(UserError, match="unknown annotation set 'play2'; did you mean 'play'"):
        store.labelling("play2")


def test_what_was_played_needs_no_annotation(record_here):
    # `Walk` has actions 1 to 4; 1 brings a reward of 1, 2 one of -1. The last row of a lane repeats the row before.
    store = record_here("Walk", steps=40, lanes=2)
    labels = store.labelling("play").labels(store.rows)
    actions = store.actions.copy()
    assert actions[[19, 39]].tolist() == [0, 0]
    actions[[19, 39]] = actions[[18, 38]]
    assert labels["next_action"].tolist() == (actions - 1).tolist()
    assert labels["reward_sign"].tolist() == [{1: 2, 2: 0}.get(action, 1) for action in actions.tolist()]
    assert store.labelling("play").values(store.rows, ["next_action"]) is None


def test_a_lane_of_one_row_has_no_row_before(record_here):
    store = record_here("Walk", steps=3, lanes=3)
    assert store.labelling("play").labels(store.rows)["reward_sign"].tolist() == [1, 1, 1]
