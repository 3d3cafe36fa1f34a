"""What users get wrong: one sentence that says what, where and what to do; nothing is published."""

import gymnasium
import numpy as np
import pytest

from manicap.core.errors import Failure, UserError
from manicap.core.registry import allow_plugins
from manicap.environments import making
from manicap.environments.config import RecordConfig
from manicap.environments.recording import record, record_store
from tests.environments import worlds
from tests.environments.conftest import WORLDS, stores

BAD = {
    "Invisible": r"render\(\) of .*Invisible returned None in lane 0 at step 0: it must return an image",
    "Float": r"render\(\) of .*Float is float64 \[48, 64, 3\] in lane 0 at step 0; needed is uint8",
    "Growing": r"frame of .*Growing is \[50, 64, 3\] in lane \d at step \d+, and was \[48, 64, 3\] at the first step",
    "Failing": r"step\(\) of .*Failing failed in lane 0 at step 3: ZeroDivisionError: the wheel came off$",
    "OldReset": r"reset\(\) of .*OldReset returned 0.5 as its info in lane 0 at step 0; it must be a dict",
    "Quitting": r"step\(\) of .*Quitting failed in lane 0 at step 1: SystemExit: no licence$",
    "NotANumber": r"the label 'x' is nan in lane 0 at step 5$",
    "OtherType": r"the label 'x' is 2 of type int in lane 0 at step 4, and was of type float at the first step",
    "OtherName": r"the label 'z' is new in lane 0 at step 3: every step must have the same labels",
    "Forgetful": r"the label 'door' is missing in lane 0 at step 6: every step must have the same labels",
    "Late": r"the label 'x' is new in lane 0 at step 1: every step must have the same labels, reset\(\) included",
    "Listing": r"the label 'x' is \[1, 2\] \(list\) in lane 0 at step 0: it must be a bool, an int, a float or a str",
    "make_walk_for_people": r"renders human: make it with render_mode='rgb_array', or take frames from the observation",
    "make_blind": r"renders nothing: make it with render_mode='rgb_array', or take frames from the observation",
    "not_an_environment": r"not_an_environment must make a gymnasium.Env, and returned 3",
    "nowhere": r"cannot import tests.environments.worlds:nowhere",
    "DOORS": r"is not a function that makes an environment",
}


@pytest.mark.parametrize("world", BAD)
def test_a_bad_environment_is_named_with_lane_and_step(record_here, tmp_path, world):
    with pytest.raises(UserError, match=BAD[world]) as raised:
        record_here(world)
    assert "\n" not in str(raised.value)
    assert stores(tmp_path) == []


@pytest.mark.parametrize("local", [False, True])
def test_an_error_on_the_way_names_the_lane_and_leaves_nothing(record_here, tmp_path, local):
    # Later than the survey of the first 16 steps: a worker meets it, or this process itself.
    env = (lambda: worlds.Failing("rgb_array", at=18)) if local else f"{WORLDS}:Failing"
    with pytest.raises(UserError, match=r"failed in lane 0 at step 18: ZeroDivisionError: the wheel came off$"):
        record_here(env, options="{}" if local else '{"at": 18}', name="failing" if local else None, workers=1)
    assert stores(tmp_path) == []


def test_more_classes_than_a_probe_can_tell_apart(record_here, tmp_path, monkeypatch):
    monkeypatch.setattr("manicap.environments.joining.MAX_CLASSES", 10)
    with pytest.raises(UserError, match="the label 'name' has more than 4,096 classes: give numbers"):
        record_here("ManyClasses")
    with pytest.raises(UserError, match=r"'x' has more than .* mark it as a number \(label_kinds 'x:number'\)"):
        record_here("Walk", label_kinds=("x:class",), steps=600)
    assert stores(tmp_path) == []


def test_labels_that_begin_later_than_the_survey_are_not_lost(record_here, tmp_path):
    # The survey plays 16 steps without labels; the lane itself meets the first ones.
    class Waking(worlds.Endless):
        def step(self, action):
            observation, reward, terminated, truncated, info = super().step(action)
            return observation, reward, terminated, truncated, {"labels": {"x": 1}} if self.time == 20 else info

    with pytest.raises(UserError, match=r"the label 'x' is new in lane 0 at step 20: every step must have the same"):
        record_here(lambda: Waking("rgb_array"), name="waking", lanes=1)
    assert stores(tmp_path) == []


def test_a_class_beyond_the_limit_ends_a_lane(monkeypatch):
    from manicap.environments.labels import MAX_CLASSES, Column, LabelEncoder

    encoder = LabelEncoder((Column("name", "str", "class"),))
    for number in range(MAX_CLASSES):
        assert encoder.encode({"name": str(number)}, "") == (number,)
    with pytest.raises(UserError, match="more than 4,096 classes"):
        encoder.encode({"name": "one more"}, "")


def test_frames_of_an_unusual_size_are_not_resized_silently(record_here):
    with pytest.raises(UserError, match=r"frames of 40 x 64; sides must be 48 to 256: give .*--frame-size 84 84"):
        record_here("Walk", options='{"height": 40}')
    with pytest.raises(UserError, match=r"frames of 300 x 64"):
        record_here("Walk", options='{"height": 300}')
    assert record_here("Walk", options='{"height": 300}', frame_size=(48, 64)).frame_shape == (48, 64)


def test_an_unregistered_name_lists_the_nearest(record_here):
    with pytest.raises(UserError, match=r"unknown environment 'CartPol-v1'; did you mean CartPole-v1"):
        record_here("CartPol-v1")
    with pytest.raises(UserError, match=r"unknown environment 'MiniGrid-DoorKy-8x8-v0'; .*MiniGrid-DoorKey-8x8-v0"):
        record_here("MiniGrid-DoorKy-8x8-v0")
    with pytest.raises(UserError, match=r"unknown environment 'Minigrid-Doorkey-8x8-v0'; .*MiniGrid-DoorKey-8x8-v0"):
        record_here("Minigrid-Doorkey-8x8-v0")
    with pytest.raises(UserError, match=r"^unknown environment 'qqqq-qqqq'; an environment of a package is named"):
        record_here("qqqq-qqqq")


@pytest.mark.parametrize("path", ["data/environments/CartPole-v1/0123456789ab", "./CartPole-v1", "/CartPole-v1"])
def test_the_path_of_a_store_that_is_gone_is_not_taken_for_the_name_of_an_environment(path, record_here):
    # Registered names have at most one slash: namespace/name-v0.
    with pytest.raises(UserError, match=f"^there is no store at {path}: 'manicap data list' shows"):
        record_here(path)


def test_a_directory_without_a_store_is_no_name_of_an_environment(record_here, tmp_path):
    with pytest.raises(UserError, match=f"there is no store in the directory {tmp_path}: 'manicap data list'"):
        record_here(str(tmp_path))


def test_a_package_that_is_missing_is_named(record_here, monkeypatch):
    monkeypatch.setitem(making.PACKAGES, "Pond", "pond_env")
    with pytest.raises(UserError, match=r"Pond-v0 needs the package pond_env: pip install pond-env"):
        record_here("Pond-v0")
    gymnasium.register("Lake-v0", entry_point="no_such_package.lakes:Lake")
    try:
        with pytest.raises(UserError, match=r"Lake-v0 needs a package that is not installed: .*no_such_package"):
            record_here("Lake-v0")
    finally:
        del gymnasium.registry["Lake-v0"]


def test_a_closure_without_a_name_is_told_how_to_give_it(record_here):
    with pytest.raises(UserError, match=r"cannot be imported by other processes: define it in a module .* name='...'"):
        record_here(lambda: worlds.Walk("rgb_array"))
    with pytest.raises(UserError, match="the labels .*lambda.* cannot be imported"):
        record_here("Walk", labels=lambda env, observation, info: {})
    with pytest.raises(UserError, match=r"must be one name, without /"):
        record_here(lambda: worlds.Walk("rgb_array"), name="a/b")
    with pytest.raises(UserError, match="all of these can: leave it out"):
        record_here("Walk", name="walk")
    with pytest.raises(UserError, match="a function that makes the environment, not an environment"):
        record_here(worlds.Walk("rgb_array"))


def test_a_store_of_a_closure_cannot_be_recorded_from_its_config(record_here, tmp_path):
    store = record_here(lambda: worlds.Walk("rgb_array"), name="mine")
    with pytest.raises(UserError, match="was made by a function of the process that recorded it"):
        record_store(store.config, tmp_path / "elsewhere")


def test_what_a_config_names_is_imported_only_if_the_caller_named_it(tmp_path):
    config = RecordConfig("tests.environments.never_named:make")
    with pytest.raises(UserError, match="a file cannot decide what is imported"):
        record_store(config, tmp_path)
    allow_plugins([config.env])
    with pytest.raises(UserError, match="cannot import tests.environments.never_named:make"):
        record_store(config, tmp_path)


def test_functions_that_fail_are_named(record_here):
    with pytest.raises(UserError, match=r"the labels function .*unlabelled failed in lane 0 at step 0: KeyError: 'x'"):
        record_here("Walk", labels=worlds.unlabelled)
    with pytest.raises(UserError, match=r"the policy .*astray returned 5, which is not an action of Discrete\(4"):
        record_here("Walk", policy=worlds.astray)


def test_labels_that_are_not_there(record_here):
    with pytest.raises(UserError, match=r"labels must be a dict in lane 0 at step 0, got None"):
        record_here("Silent", labels="info")
    with pytest.raises(UserError, match=r"need a vector of numbers, and the observation is uint8 \[48, 64, 3\]"):
        record_here("Walk", labels="observation")
    with pytest.raises(UserError, match=r"the observation has 3 entries .*, and label_names has 1"):
        record_here("Vector", labels="observation", label_names=("x",))
    with pytest.raises(UserError, match=r"unknown label 'z' .*door"):
        record_here("Walk", label_kinds=("z:place",))
    with pytest.raises(UserError, match=r"'door' is of type str and cannot be of kind number"):
        record_here("Walk", label_kinds=("door:number",))
    with pytest.raises(UserError, match=r"no 'picture' in lane 0 at step 0; it has: image, state"):
        record_here("Pushed", frames="observation.picture")
    with pytest.raises(UserError, match=r"is a dict .* of image, state: name one, such as observation.image"):
        record_here("Pushed", frames="observation")
    with pytest.raises(UserError, match=r"the observation is a dict of image, state .*: give a function of"):
        record_here("Pushed", labels="observation")


def test_all_problems_of_a_config_are_told_together(tmp_path):
    wrong = {"labels": "obs", "policy": "greedy", "frames": "screen", "label_kinds": ("x",), "options": "[1]"}
    with pytest.raises(UserError) as raised:
        record("CartPole-v1", steps=4, data_dir=tmp_path, **wrong)
    for words in (
        "unknown labels 'obs'",
        "unknown policy 'greedy'",
        "unknown frames 'screen'",
        "x:place",
        "JSON object",
    ):
        assert words in str(raised.value)
    assert "steps must be at least the number of lanes (8), got 4" in str(raised.value)


def test_bad_lists_of_actions(record_here, tmp_path):
    file = tmp_path / "actions.npy"
    with pytest.raises(UserError, match=r"cannot read the policy .*actions.npy: No such file"):
        record_here("Walk", policy=f"actions:{file}")
    np.save(file, np.zeros((2, 5)))
    with pytest.raises(UserError, match=r"holds \[2, 5\]; actions are \['T'\], or \[3, 'T'\] by lane"):
        record_here("Walk", policy=f"actions:{file}")
    np.save(file, np.array([{"a": 1}], object), allow_pickle=True)
    with pytest.raises(UserError, match="is not an array of actions"):
        record_here("Walk", policy=f"actions:{file}")


def test_other_spaces_are_refused(record_here):
    def make():
        env = worlds.Walk("rgb_array")
        env.action_space = gymnasium.spaces.MultiDiscrete([2, 2])
        return env

    with pytest.raises(UserError, match="has actions of MultiDiscrete; Discrete and Box are supported"):
        record_here(make, name="multi")


def test_what_does_not_fit_is_refused_before_anything_is_played(record_here, monkeypatch):
    monkeypatch.setattr("manicap.environments.recording.play_in_processes", lambda *_: pytest.fail("played"))
    with pytest.raises(Failure, match=r"1,000,000,000 steps of .*Walk need .* GB, but only"):
        record_here("Walk", steps=10**9, workers=1)


def test_a_killed_worker_is_told_and_the_recording_can_be_resumed(record_here, tmp_path, monkeypatch):
    from manicap.play.workers import LaneDied

    def die(*_):
        raise LaneDied(2, "was killed by SIGKILL")

    monkeypatch.setattr("manicap.environments.recording.play_in_processes", die)
    with pytest.raises(Failure, match=r"lane 2 of .*Walk was killed by SIGKILL; rerun to resume"):
        record_here("Walk", workers=1)
    (building,) = stores(tmp_path)
    assert building.endswith(".building")


def test_a_url_is_not_taken_for_a_directory(record_here, tmp_path, monkeypatch):
    monkeypatch.setenv("MANICAP_CACHE", str(tmp_path / "cache"))
    with pytest.raises(UserError, match="stores of environments are kept on disk, not at memory://bucket/stores"):
        record_here("Walk", data_dir="memory://bucket/stores")


def test_an_environment_that_cannot_begin_is_closed_and_the_random_numbers_restored(record_here):
    closed = []

    class Broken(worlds.Walk):
        def reset(self, *, seed=None, options=None):
            raise OSError("no assets")

        def close(self):
            closed.append(True)
            raise RuntimeError("not what went wrong first")

    state = np.random.get_state()[1].copy()  # noqa: NPY002
    with pytest.raises(UserError, match=r"reset\(\) of local:broken failed in lane 0 at step 0: OSError: no assets$"):
        record_here(lambda: Broken("rgb_array"), name="broken")
    assert closed == [True]
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002


def test_a_disk_that_fills_up_on_the_way_is_told(small_disk, record_here, monkeypatch):
    monkeypatch.setattr(
        "manicap.environments.recording.require_space", lambda *_: None
    )  # somebody else takes the space
    with pytest.raises(Failure, match=r"cannot record into .*disk: lane 0: No space left on device"):
        record_here("Noise", steps=900, lanes=1, data_dir=small_disk, workers=1)
