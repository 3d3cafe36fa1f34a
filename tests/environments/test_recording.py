"""A store holds what its environment showed, lane by lane, however many processes recorded it."""

import functools
import os
import shutil
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import gymnasium
import numpy as np
import pytest

from manicap.core.seeding import stream_seed
from manicap.environments import recording
from manicap.environments.config import RecordConfig
from manicap.environments.integrity import open_environment_store, verify_environment_store
from manicap.environments.lane_worker import play_lane
from manicap.environments.layout import survey
from manicap.environments.making import OwnFunctions
from manicap.environments.recording import record
from tests.environments import worlds
from tests.environments.conftest import WORLDS, content, shades_by_hand, stores


def play_by_hand(env, seed, purpose, lane, steps, policy=None, limit=1000):
    """Frames, actions, rewards, ends, infos and observations of a lane, by gymnasium's own rules."""

    def number(stream):
        return stream_seed(seed, "record", stream, purpose, lane) % 2**31

    env.action_space.seed(number("actions"))
    observation, info = env.reset(seed=number("environment"))
    seen, length = [], 0
    for row in range(steps):
        frame, before = env.render(), (observation, info)
        if row == steps - 1:
            seen.append((frame, None, 0.0, 3, *before))
            break
        action = env.action_space.sample() if policy is None else policy(observation)
        observation, reward, terminated, truncated, info = env.step(action)
        length += 1
        ended = 1 if terminated else 2 if truncated or length == limit else 0
        seen.append((frame, action, reward, ended, *before))
        if ended:
            (observation, info), length = env.reset(), 0
    return [list(column) for column in zip(*seen, strict=True)]


def test_a_store_holds_what_its_lanes_play(record_here):
    # 61 steps over 3 lanes: the first plays 21, the others 20.
    store = record_here("Walk", steps=61, seed=4, purpose="probe")
    row, starts = 0, []
    for lane, steps in enumerate([21, 20, 20]):
        frames, actions, rewards, ends, _, infos = play_by_hand(worlds.Walk("rgb_array"), 4, "probe", lane, steps)
        rows = slice(row, row + steps)
        np.testing.assert_array_equal(store.colour_frames(rows), np.stack(frames))
        assert store.actions[rows].tolist() == [*actions[:-1], 0]
        assert store.rewards[rows].tolist() == rewards
        assert store.steps["ended"][rows].tolist() == ends
        table = np.load(store.path / "labels.npy")[rows]
        names = store.layout.columns[1].names
        for found, info in zip(table, infos, strict=True):
            expected = info["labels"]
            assert (found["x"], names[found["door"]], found["lit"], found["speed"]) == tuple(expected.values())
        starts += [row, *(row + 1 + np.flatnonzero(np.array(ends[:-1]) > 0))]
        row += steps
    assert store.episodes["start"].tolist() == starts
    assert store.episodes["length"].sum() == 61
    assert len(starts) > 3, "episodes end within lanes"
    assert sorted(names) == list(names)
    assert store.actions.min() == 0
    assert set(store.actions) == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("frames", ["render", "observation"])
def test_a_frame_is_that_of_its_labels_if_the_environment_draws_into_one_array(record_here, frames):
    store = record_here("Canvas", frames=frames, steps=22, lanes=2)
    time = np.tile([0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0], 2)  # 11 steps per lane, 5 per episode
    assert store.given_labels(store.rows)["time"].tolist() == time.tolist()
    np.testing.assert_array_equal(store.colour_frames(store.rows)[:, 7, 9], np.repeat(10 * time[:, None], 3, 1))


def test_the_bytes_do_not_depend_on_the_number_of_workers(record_here, tmp_path):
    one, three, none = (record_here("Walk", workers=each, data_dir=tmp_path / f"{each}") for each in (1, 3, 0))
    assert content(one) == content(three) == content(none)
    assert set(content(one)) == {
        "frames.zst", "steps.npy", "actions.npy", "labels.npy", "episodes.npy", "manifest.json"
    }  # fmt: skip
    assert one.fingerprint == three.fingerprint
    assert verify_environment_store(one.path) == []


def test_an_existing_store_is_opened_and_nothing_is_played(record_here, monkeypatch):
    store = record_here("Walk")
    monkeypatch.setattr(recording, "_build", lambda *_: pytest.fail("recorded again"))
    assert record_here("Walk").path == store.path
    assert record_here(worlds.Walk).path == store.path, "the class and its path name one store"


def test_seeds_and_purposes_are_other_episodes(record_here):
    found = [record_here("Walk", **each) for each in ({}, {"seed": 1}, {"purpose": "probe"})]
    assert len({store.fingerprint for store in found}) == 3


def test_minigrid_is_recorded_as_it_renders(record_here):
    minigrid = pytest.importorskip("minigrid")
    assert minigrid
    name = "MiniGrid-Empty-5x5-v0"
    store = record_here(name, steps=12, lanes=2, labels=f"{WORLDS}:agent")
    assert store.frame_shape == (160, 160)
    frames, actions, *_ = play_by_hand(gymnasium.make(name, render_mode="rgb_array"), 0, "pretrain", 1, 6)
    np.testing.assert_array_equal(store.colour_frames(slice(6, 12)), np.stack(frames))
    assert store.actions[6:11].tolist() == actions[:-1]
    assert store.manifest["versions"].keys() >= {"minigrid", "gymnasium", "manicap"}
    assert [variable.kind for variable in store.variables] == ["number", "class"]


def test_cartpole_is_recorded_with_its_observation_as_labels(record_here):
    pytest.importorskip("pygame")
    names = ("x", "v", "angle", "w")
    store = record_here("CartPole-v1", steps=40, lanes=1, labels="observation", label_names=names, frame_size=(60, 90))
    env = gymnasium.make("CartPole-v1", render_mode="rgb_array")
    frames, _, _, ends, observations, _ = play_by_hand(env, 0, "pretrain", 0, 40)
    np.testing.assert_array_equal(
        store.labelling().values(store.rows, names), np.stack(observations).astype(np.float64)
    )
    assert (store.steps["ended"] == ends).all()
    # 400 x 600 to 60 x 90: every new pixel covers 6 2/3 x 6 2/3 old ones.
    weights = np.array([1, 1, 1, 1, 1, 1, 2 / 3])
    patch = np.tensordot(np.outer(weights, weights), np.stack(frames)[:, :7, :7].astype(float), ((0, 1), (1, 2)))
    np.testing.assert_allclose(store.colour_frames(slice(None))[:, 0, 0], patch / weights.sum() ** 2, atol=0.501)


def test_continuous_actions_and_an_image_in_a_dictionary(record_here):
    store = record_here("Pushed", steps=20, lanes=1, frames="observation.image")
    env = worlds.Pushed()
    frames, actions, rewards, ends, *_ = play_by_hand(env, 0, "pretrain", 0, 20)
    np.testing.assert_array_equal(store.colour_frames(slice(None)), np.stack(frames))
    np.testing.assert_array_equal(store.actions, np.stack([*actions[:-1], np.zeros(2)]).astype(np.float32))
    assert store.actions.dtype == np.float32
    assert store.rewards.tolist() == rewards
    # Truncated after the 7th action: rows 6 and 13; the lane ends at row 19.
    assert np.flatnonzero(store.steps["ended"]).tolist() == [6, 13, 19]
    assert store.steps["ended"][[6, 13, 19]].tolist() == [2, 2, 3]
    assert ends[6] == 2
    assert [variable.name for variable in store.labelling("play").variables] == ["reward_sign"]


def test_an_episode_that_never_ends_is_cut_at_the_limit(record_here):
    store = record_here("Endless", steps=50, lanes=1, episode_limit=20)
    assert store.episodes["length"].tolist() == [20, 20, 10]
    assert np.flatnonzero(store.steps["ended"]).tolist() == [19, 39, 49]
    assert store.steps["ended"][[19, 39, 49]].tolist() == [2, 2, 3]


def test_a_policy_of_your_own_decides_the_actions(record_here, tmp_path):
    store = record_here("Walk", steps=20, lanes=1, policy=worlds.rightwards)
    assert set(store.actions[:-1]) == {1}
    assert store.config.policy == f"{WORLDS}:rightwards"


def test_recorded_actions_are_played_in_turn_and_a_changed_file_is_another_store(record_here, tmp_path):
    file = tmp_path / "actions.npy"
    np.save(file, np.array([[1, 2, 3], [4, 3, 3]]))
    store = record_here("Walk", steps=16, lanes=2, policy=f"actions:{file}")
    assert store.actions.tolist() == [1, 2, 3, 1, 2, 3, 1, 0, 4, 3, 3, 4, 3, 3, 4, 0]
    np.save(file, np.array([2]))
    other = record_here("Walk", steps=16, lanes=2, policy=f"actions:{file}")
    assert other.path != store.path
    assert other.actions.tolist() == [2] * 7 + [0] + [2] * 7 + [0]


def test_a_closure_is_recorded_by_this_process_under_a_name(record_here):
    height = 50
    store = record_here(lambda: worlds.Walk("rgb_array", height=height), name="tall-walk")
    assert store.config.env == "local:tall-walk"
    assert store.subject == "tall-walk"
    assert store.frame_shape == (50, 64)
    same = record_here("Walk", options='{"height": 50}')
    np.testing.assert_array_equal(store.frames[:], same.frames[:])


@pytest.mark.parametrize("name", ["3d-maze", "my maze", "Straße (2)"])
def test_a_name_that_could_be_no_module_is_accepted(record_here, name):
    store = record_here(lambda: worlds.Walk("rgb_array"), name=name, steps=8, lanes=1)
    assert store.subject == name
    assert record_here(lambda: worlds.Walk("rgb_array"), name=name, steps=8, lanes=1).path == store.path


def with_any_options(**options):
    return worlds.Walk(**options)


def test_a_maker_with_any_keywords_is_asked_to_render_if_it_does_not_by_itself(record_here):
    # `make_walk` gives the render mode itself, and would not accept it.
    first = record_here("Walk", options='{"height": 50}').frames[:]
    makers = {"any": with_any_options, "partial": functools.partial(worlds.Walk, height=50), "own": worlds.make_walk}
    for name, maker in makers.items():
        own = {"name": name} if name == "partial" else {}
        found = record_here(maker, options="{}" if own else '{"height": 50}', **own)
        np.testing.assert_array_equal(found.frames[:], first)
    pytest.importorskip("pygame")
    cartpole = functools.partial(gymnasium.make, "CartPole-v1")
    assert len(record_here(cartpole, name="cartpole", steps=8, lanes=1, frame_size=(48, 48))) == 8


def test_the_callers_random_numbers_are_left_alone(record_here):
    np.random.seed(3)  # noqa: NPY002
    expected = np.random.random()  # noqa: NPY002
    np.random.seed(3)  # noqa: NPY002
    record_here("Walk")
    assert np.random.random() == expected  # noqa: NPY002


def test_lanes_differ_even_if_the_environment_seeds_the_global_generators_when_it_is_made(record_here):
    store = record_here("Shades", steps=12, lanes=3)
    assert store.frames[:][:, 0, 0].reshape(3, 4).tolist() == shades_by_hand(3, 4)


def test_a_recording_killed_in_the_middle_resumes_to_the_same_bytes(record_here, tmp_path):
    flag = tmp_path / "killed"
    options = f'{{"file": "{flag}"}}'
    code = (
        f"from manicap.environments.recording import record; record('{WORLDS}:Killer', steps=1200, lanes=4,"
        f" workers=1, options='{options}', data_dir='{tmp_path}/data', quiet=True)"
    )
    # The recorder's survey makes an environment of its own, in its own process; its only worker makes one per lane.
    process = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert process.returncode == -9
    (building,) = stores(tmp_path)
    assert building.endswith(".building")
    (directory,) = tmp_path.glob("data/environments/*/.*.building")
    assert sorted(path.name for path in directory.glob("finished-*")) == ["finished-0.json", "finished-1.json"]
    before = {lane: (directory / f"frames-{lane}").stat().st_mtime_ns for lane in (0, 1)}

    played = []
    play = recording.play_in_processes

    def watched(module, job, lanes, *rest):
        played.extend(lanes)
        assert before == {lane: (directory / f"frames-{lane}").stat().st_mtime_ns for lane in (0, 1)}
        play(module, job, lanes, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recording, "play_in_processes", watched)
        resumed = record_here("Killer", steps=1200, lanes=4, options=options, workers=1)
    assert played == [2, 3]
    assert stores(tmp_path) == [resumed.path.name]
    resumed_content = content(resumed)
    shutil.rmtree(resumed.path)
    assert content(record_here("Killer", steps=1200, lanes=4, options=options)) == resumed_content


def test_what_was_interrupted_with_other_code_is_not_resumed(record_here, tmp_path, monkeypatch):
    module = tmp_path / "my_world.py"
    module.write_text("from tests.environments.worlds import Walk\ndef make():\n    return Walk('rgb_array')\n")
    monkeypatch.syspath_prepend(tmp_path)

    held = []

    def interrupt(config, found, directory, *_):
        held.append(sorted(path.name for path in directory.iterdir()))
        (directory / "finished-0.json").write_text("{}")
        raise KeyboardInterrupt

    monkeypatch.setattr(recording, "_play_in_processes", interrupt)
    for text in ("", "", "# changed"):
        module.write_text(module.read_text() + text)
        with pytest.raises(KeyboardInterrupt):
            record_here("my_world:make", workers=1)
    assert held == [["job.json"], ["finished-0.json", "job.json"], ["job.json"]]


def test_what_was_interrupted_is_not_resumed_if_its_code_cannot_be_compared(record_here):
    def interrupt(config, layout, lane, *rest):
        if lane == 1:
            raise KeyboardInterrupt
        play_lane(config, layout, lane, *rest)

    def record_shade(shade):
        def make():
            env = worlds.Endless("rgb_array")
            env.render = lambda: np.full((48, 64, 3), shade, np.uint8)
            return env

        return record_here(make, name="mine", steps=8, lanes=2)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recording, "play_lane", interrupt)
        with pytest.raises(KeyboardInterrupt):
            record_shade(10)
    assert np.unique(record_shade(200).frames[:]).tolist() == [200]


def test_a_store_of_other_code_is_opened_with_a_warning(record_here, tmp_path, monkeypatch, capsys):
    module = tmp_path / "other_world.py"
    module.write_text("from tests.environments.worlds import Walk\ndef make():\n    return Walk('rgb_array')\n")
    monkeypatch.syspath_prepend(tmp_path)
    store = record_here("other_world:make")
    assert record_here("other_world:make").fingerprint == store.fingerprint
    assert capsys.readouterr().err == ""
    module.write_text(module.read_text() + "# changed")
    assert record_here("other_world:make").fingerprint == store.fingerprint
    told = capsys.readouterr().err
    assert f"warning: the code of other_world:make has changed since {store.path} was recorded" in told
    assert f"manicap data remove {store.path}" in told


def test_functions_of_a_script_are_compared_by_its_file(record_here, tmp_path, capsys):
    script = tmp_path / "script.py"
    for text in ("make = lambda: Walk('rgb_array')", "make = lambda: Walk('rgb_array')  # changed"):
        script.write_text(text)
        space = {"Walk": worlds.Walk, "__name__": "__main__"}
        exec(compile(text, str(script), "exec"), space)
        assert capsys.readouterr().err == ""
        record_here(space["make"], name="mine", steps=8, lanes=2)
    assert "the code of local:mine has changed since" in capsys.readouterr().err


def test_lists_and_dicts_are_taken_for_tuples_json_and_pairs(record_here):
    plain = {"frame_size": (50, 60), "label_kinds": ("x:place",), "options": '{"height": 50}'}
    store = record_here("Walk", **plain)
    assert record_here("Walk", **{**plain, "frame_size": [50, 60], "label_kinds": ["x:place"]}).path == store.path
    given = {"frame_size": (50, 60), "label_kinds": {"x": "place"}, "options": {"height": 50}}
    assert record_here("Walk", **given).path == store.path


def test_open_by_path(record_here):
    store = record_here("Walk")
    again = open_environment_store(str(store.path))
    assert again.config == store.config
    assert "60 frames" in repr(again)


def test_record_needs_no_main_guard(tmp_path):
    # A script that records at its top level: workers are started by us, and do not run it again.
    script = tmp_path / "script.py"
    script.write_text(
        "from manicap.environments.recording import record\n"
        f"print(len(record('{WORLDS}:Walk', steps=8, lanes=2, workers=2, data_dir={str(tmp_path)!r}, quiet=True)))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True)
    assert found.stdout == "8\n", found.stderr


def test_record_names_its_settings():
    with pytest.raises(ValueError, match="unknown setting 'step'; did you mean 'steps'"):
        record("CartPole-v1", step=3)


def test_two_recorders_of_one_store_play_once_and_share_it(record_here, monkeypatch):
    calls = []
    play = recording.play_in_processes
    monkeypatch.setattr(recording, "play_in_processes", lambda *all: (calls.append(all), play(*all)))
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda world: record_here(world, workers=1), ["Walk", "Walk"])
    assert first.path == second.path
    assert len(calls) == 1


def test_memory_does_not_grow_with_the_number_of_steps(tmp_path):
    def peak(steps):
        config = RecordConfig(f"{WORLDS}:Endless", steps=steps, lanes=1)
        own = OwnFunctions(env=lambda: worlds.Endless("rgb_array"))
        layout = survey(config, own).layout
        tracemalloc.start()
        play_lane(config, layout, 0, tmp_path, own, lambda rows: None)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(300)  # what is made once
    # A row takes 25 bytes and more: 2,700 rows that were kept would take 67,500.
    assert abs(peak(3000) - peak(300)) < 30_000


def test_workers_find_what_the_caller_can_import(record_here, tmp_path, monkeypatch):
    (tmp_path / "my_walks.py").write_text(
        "import gymnasium\nfrom tests.environments.worlds import Walk\n\n"
        "def make():\n    return Walk('rgb_array')\n\n"
        "gymnasium.register('MyWalk-v3', entry_point=Walk, max_episode_steps=4)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    made, registered = (record_here(f"my_walks:{name}", workers=1) for name in ("make", "MyWalk-v3"))
    try:
        np.testing.assert_array_equal(made.frames[:4], registered.frames[:4])
        assert registered.episodes["length"].max() == 4
        assert registered.subject == "MyWalk-v3"
    finally:
        del gymnasium.registry["MyWalk-v3"]


def test_an_environment_may_print_more_than_a_pipe_holds(record_here):
    assert len(record_here("Chatty", steps=60, lanes=1, workers=1)) == 60
