import numpy as np

from manicap.probing.subsets import DRAWS, FOLDS, STRETCH, assign_folds, draw_subsets, label_counts


def test_counts_double_from_50_and_end_with_all():
    assert label_counts(1000) == (50, 100, 200, 400, 1000)
    assert label_counts(35_000) == (50, 100, 200, 400, 800, 1600, 3200, 6400, 12_800, 35_000)
    assert label_counts(1700) == (50, 100, 200, 400, 800, 1700)
    assert label_counts(1600) == (50, 100, 200, 400, 800, 1600)
    assert label_counts(40) == (40,)


def test_subsets_are_nested_seeded_and_the_small_ones_drawn_several_times():
    draws = draw_subsets(5000, seed=3)
    assert len(draws) == DRAWS
    assert draws[0].counts == label_counts(5000)
    for draw in draws[1:]:
        assert draw.counts == (50, 100, 200, 400, 800)
    for draw in draws:
        assert sorted(draw.order) == list(range(5000))
    assert len({tuple(draw.order[:50]) for draw in draws}) == DRAWS
    np.testing.assert_array_equal(draws[2].order, draw_subsets(5000, seed=3)[2].order)
    assert not np.array_equal(draws[0].order, draw_subsets(5000, seed=4)[0].order)
    assert len(draw_subsets(40, seed=0)) == 1


def test_a_stretch_of_an_episode_is_in_one_fold():
    episodes = np.repeat([4, 7, 9], [1000, 90, 500])
    folds = assign_folds(episodes, seed=0)
    assert set(folds) == set(range(FOLDS))
    for episode in np.unique(episodes):
        own = folds[episodes == episode]
        for start in range(0, len(own), STRETCH):
            assert len(set(own[start : start + STRETCH])) == 1
    # 8 + 1 + 4 stretches dealt to five folds: two or three each.
    stretches = [folds[episodes == e][::STRETCH] for e in np.unique(episodes)]
    assert set(np.bincount(np.concatenate(stretches))) == {2, 3}
