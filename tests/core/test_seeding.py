import numpy as np

from manicap.core.seeding import numpy_generator, stream_seed


def test_streams_are_repeatable_and_independent():
    first = numpy_generator(0, "lane", 3).integers(0, 2**63, 1000)
    assert np.array_equal(first, numpy_generator(0, "lane", 3).integers(0, 2**63, 1000))
    for other in (numpy_generator(1, "lane", 3), numpy_generator(0, "lane", 4), numpy_generator(0, "lan", "e", 3)):
        assert not np.intersect1d(first, other.integers(0, 2**63, 1000)).size


def test_number_and_word_name_different_streams():
    assert stream_seed(0, 1) != stream_seed(0, "1")


def test_stream_seeds_fit_torch():
    seeds = [stream_seed(seed, "x") for seed in range(200)]
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert len(set(seeds)) == 200
