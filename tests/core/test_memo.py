"""Data is opened once per job, and anew for every job."""

import pytest

from manicap.core.memo import once, opened_once


@pytest.fixture
def opened():
    """What was opened, and how to open a thing."""
    names = []

    def open_it(name):
        return once(name, lambda: names.append(name) or [name])

    return names, open_it


def test_a_job_opens_a_thing_once_and_a_job_inside_of_it_shares_it(opened):
    names, open_it = opened
    with opened_once():
        first = open_it("a")
        assert open_it("a") is first
        open_it("b")
        with opened_once():
            assert open_it("a") is first
        assert open_it("a") is first
    assert names == ["a", "b"]


def test_the_next_job_and_calls_outside_of_a_job_open_it_again(opened):
    names, open_it = opened
    with opened_once():
        open_it("a")
    with opened_once():
        open_it("a")
    open_it("a")
    open_it("a")
    assert names == ["a"] * 4


def test_a_failure_is_not_remembered(opened):
    names, open_it = opened
    with opened_once():
        with pytest.raises(ValueError, match="damaged"):
            once("a", lambda: int("damaged"))
        assert open_it("a") == ["a"]
    assert names == ["a"]


def test_a_job_that_fails_forgets_what_it_opened(opened):
    names, open_it = opened

    def failing_job():
        with opened_once():
            open_it("a")
            raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        failing_job()
    open_it("a")
    assert names == ["a", "a"]
