"""URLs as data directories: which are, where their caches are, what is said of those that cannot be."""

import subprocess
import sys
from pathlib import Path

import pytest

from manicap.core.errors import UserError
from manicap.core.remote import ORIGIN, Remote, local_directory, portable, remote_of, remote_url


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MANICAP_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize("kind", [str, Path])
@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("s3://bucket/manicap", "s3://bucket/manicap"),
        ("S3://bucket/manicap/", "s3://bucket/manicap"),
        ("s3://bucket", "s3://bucket"),
        ("memory://a/b", "memory://a/b"),
        ("https://host:8000/data", "https://host:8000/data"),
        ("sftp://me@host/data", "sftp://me@host/data"),
        ("file:///tmp/a", "file:///tmp/a"),
        ("local:///tmp/a", "file:///tmp/a"),
    ],
)
def test_a_url_is_the_same_as_text_and_as_a_path(kind, given, url):
    # A Path drops slashes: str(Path("s3://bucket")) is "s3:/bucket".
    assert remote_url(kind(given)) == url


@pytest.mark.parametrize("given", ["data", "/data", "../data", "./s3", "a/s3:/b", "C:/data", "/tmp/s3://x", "a::b"])
def test_a_path_is_no_url(given):
    assert remote_url(given) is None
    assert local_directory(given) == Path(given)
    assert local_directory(Path(given)) == Path(given)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("s4://bucket/x", "unknown scheme 's4'; did you mean 's3'?"),
        ("s4://bucket/x", "for a local directory of this name give its absolute path"),
        ("s3://", "names no directory; write it as s3://bucket/folder"),
        (Path("s3://"), "names no directory"),
        ("simplecache::s3://bucket/x", "is a chain of file systems"),
        (Path("simplecache::s3://bucket/x"), "is a chain of file systems"),
        ("ftp://me:secret@host/x", "FSSPEC_FTP_PASSWORD"),
    ],
)
def test_what_cannot_be_a_data_directory_is_one_sentence(given, sentence, cache):
    with pytest.raises(UserError) as caught:
        local_directory(given)
    assert sentence in str(caught.value)
    assert "secret" not in str(caught.value)
    assert not cache.exists()


def test_a_backend_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)  # as if it were not installed
    with pytest.raises(UserError, match=r"^s3:// needs the package s3fs: pip install s3fs$"):
        Remote("s3://bucket/x").read("a")


def test_every_url_has_a_cache_that_names_it(cache):
    urls = ["memory://a/b", "memory://a-b", "memory://a", f"memory://{'long/' * 100}"]
    directories = [local_directory(url) for url in urls]
    assert len(set(directories)) == 4
    for url, directory in zip(urls, directories, strict=True):
        assert directory.parent == cache
        assert remote_of(directory) == Remote(url.rstrip("/"))
        assert local_directory(url) == local_directory(f"{url}/") == local_directory(directory) == directory
        assert portable(directory) == url.rstrip("/")
    assert remote_of(cache) is None
    assert portable(Path("data")) == Path.cwd() / "data"


def test_a_damaged_note_is_told_of_and_written_again_for_its_url():
    directory = local_directory("memory://a")
    (directory / ORIGIN).write_text((directory / ORIGIN).read_text().replace("memory://a", "memory://b"))
    with pytest.raises(UserError, match=r"\.remote\.json is damaged .*; remove this file, and give the URL"):
        remote_of(directory)
    assert remote_of(local_directory("memory://a")) == Remote("memory://a")


def test_the_cache_is_in_the_users_cache_directory(tmp_path, monkeypatch):
    monkeypatch.delenv("MANICAP_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert local_directory("memory://a").parent == tmp_path / "home/.cache/manicap"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert local_directory("memory://a").parent == tmp_path / "xdg/manicap"


def test_a_cache_that_cannot_be_created_is_told(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("MANICAP_CACHE", str(tmp_path / "file"))
    with pytest.raises(UserError, match=r"cannot create .*the cache of memory://a \(set MANICAP_CACHE\): Not a dir"):
        local_directory("memory://a")


def test_local_directories_do_not_load_fsspec(tmp_path):
    code = (
        "import sys; from manicap.cli.main import main;"
        f"main(['data', 'list', '--data-dir', {str(tmp_path)!r}]); print('fsspec' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


def test_a_relative_path_behind_file_is_refused():
    with pytest.raises(UserError, match="has no absolute path: write it as file:///folder"):
        remote_url("file://folder/data")
    assert remote_url("file:///folder/data") == remote_url(Path("file:///folder/data")) == "file:///folder/data"
