"""File systems of fsspec that fail as networks do. Importable by other processes.

    net://path      a disk behind a network; like most servers it has folders and files grow while they are written
    object://path   the same as an object store: asynchronous, without folders

What happens to the network is set on the class `Network`.
"""

import os
import signal
from typing import ClassVar

import fsspec
from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper
from fsspec.implementations.local import LocalFileSystem
from fsspec.spec import AbstractFileSystem


class Gone(Exception):
    """Not an OSError: most backends raise errors of their own."""


class Network(LocalFileSystem):
    protocol = "net"
    blocksize = 1000
    bytes_left: ClassVar[int | None] = None
    """Bytes of files until the connection breaks; all if None."""
    loses: ClassVar[bool] = False
    """Lose the rest silently instead of breaking."""
    is_down: ClassVar[bool] = False
    is_read_only: ClassVar[bool] = False
    pauses: ClassVar[bool] = False
    """Stop forever instead of breaking, and say so: for processes that are killed."""
    asked: ClassVar[int] = 0
    """Number of requests."""

    @classmethod
    def restore(cls):
        cls.bytes_left, cls.asked = None, 0
        cls.loses = cls.is_down = cls.is_read_only = False

    @classmethod
    def request(cls, is_write=False):
        cls.asked += 1
        if cls.is_down:
            raise Gone("could not connect")
        if is_write and cls.is_read_only:
            raise PermissionError("Access Denied")

    @classmethod
    def transfer(cls, count):
        if cls.bytes_left is None:
            return
        cls.bytes_left -= count
        if cls.bytes_left < 0 and cls.pauses:
            print("paused", flush=True)
            signal.pause()
        if cls.bytes_left < 0 and not cls.loses:
            raise Gone("the connection was reset")

    @classmethod
    def _strip_protocol(cls, path):
        for scheme in ("net://", "object://"):
            path = os.fspath(path).removeprefix(scheme)
        return "/" + path.strip("/")

    def get_file(self, rpath, lpath, **kwargs):
        AbstractFileSystem.get_file(self, rpath, lpath, **kwargs)

    def put_file(self, lpath, rpath, **kwargs):
        AbstractFileSystem.put_file(self, lpath, rpath, **kwargs)

    def makedirs(self, path, exist_ok=False):
        self.request(is_write=True)
        super().makedirs(path, exist_ok=exist_ok)

    def ls(self, path, detail=False, **kwargs):
        self.request()
        return super().ls(path, detail=detail, **kwargs)

    def _open(self, path, mode="rb", **kwargs):
        self.request(is_write=mode != "rb")
        if self.auto_mkdir and mode != "rb":
            os.makedirs(os.path.dirname(path), exist_ok=True)
        return Metered(path, mode)


class Metered:
    """A file whose bytes count."""

    def __init__(self, path, mode):
        self.file = open(path, mode)  # noqa: SIM115
        self.size = os.path.getsize(path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def read(self, size=-1):
        data = self.file.read(size)
        Network.transfer(len(data))
        return data

    def write(self, data):
        Network.transfer(len(data))
        is_lost = Network.bytes_left is not None and Network.bytes_left < 0
        return len(data) if is_lost else self.file.write(data)

    def close(self):
        self.file.close()


class ObjectStore(AsyncFileSystemWrapper):
    protocol = "object"
    cachable = True

    def __init__(self, **kwargs):
        super().__init__(Network(auto_mkdir=True), asynchronous=False)

    @classmethod
    def _strip_protocol(cls, path):
        return Network._strip_protocol(path)


def register():
    for cls in (Network, ObjectStore):
        fsspec.register_implementation(cls.protocol, cls, clobber=True)


def main():
    """`python -m tests.atari.networks BYTES ARGUMENTS...`: manicap, on a network that pauses after so many bytes."""
    import sys

    from manicap.cli.main import main as manicap
    from tests.atari import networks  # the module that is imported by name has the classes

    networks.register()
    networks.Network.bytes_left, networks.Network.pauses = int(sys.argv[1]), True
    manicap(sys.argv[2:])


if __name__ == "__main__":
    main()
