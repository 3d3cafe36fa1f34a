"""Directories of encoders on a hub: downloaded by revision into the cache of `huggingface_hub`, uploaded as one commit.

No telemetry is sent, and no request is made that these files do not need.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manicap.core.errors import Failure, UserError
from manicap.core.ranges import shown
from manicap.core.reading import reason

NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
REVISION = re.compile(r"[\w][\w./-]*")
SWITCHES = ("HF_HUB_DISABLE_TELEMETRY", "HF_HUB_DISABLE_XET")
"""Set in huggingface_hub during our calls. Xet transfers files from other hosts, with its own protocol."""
DEFAULT_REVISION = "main"
TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True)
class HubName:
    """`user/name`, or `user/name@revision` of a branch, a tag or a commit."""

    name: str
    revision: str = DEFAULT_REVISION

    @classmethod
    def parse(cls, text: str) -> "HubName | None":
        """The parsed name; None if the text cannot be one."""
        name, _, revision = text.partition("@")
        if not NAME.fullmatch(name) or ("@" in text and not REVISION.fullmatch(revision)):
            return None
        return cls(name, revision or DEFAULT_REVISION)

    def __str__(self) -> str:
        return self.name if self.revision == DEFAULT_REVISION else f"{self.name}@{self.revision}"


@dataclass(frozen=True)
class Access:
    """Which hub, and with which token."""

    token: str | bool | None = None
    """As in huggingface_hub: the saved token if None, none if False."""
    endpoint: str | None = None
    """Address of the hub; HF_ENDPOINT, or https://huggingface.co, if None."""
    cache_dir: Path | str | None = None
    """Where downloads are kept; HF_HUB_CACHE, or the cache of huggingface_hub, if None."""

    @property
    def address(self) -> str:
        return (self.endpoint or os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")

    @property
    def options(self) -> dict[str, Any]:
        """Options of a download."""
        cache_dir = self.cache_dir or os.environ.get("HF_HUB_CACHE")
        return {"token": self.token, "endpoint": self.address, "cache_dir": cache_dir}


def hub_library() -> Any:
    """`huggingface_hub`, if it is installed."""
    try:
        import huggingface_hub
    except ImportError:
        raise UserError("encoders on a hub require huggingface_hub: pip install 'manicap[hub]'") from None
    return huggingface_hub


def download(name: HubName, files: Sequence[str], access: Access, force: bool = False) -> Path:
    """The directory of these files in the cache, all from one commit; without a network, as downloaded before.

    `force` downloads them again, and requires the network.
    """
    library = hub_library()
    offline = _why_unreachable(library, name, files[0], access)
    if force and offline is not None:
        raise Failure(
            f"cannot reach {access.address} ({offline}) to download {name} again; try again with a network, or without"
            " force_download to load what was downloaded before"
        )
    try:
        first = _fetch(library, name, files[0], name.revision, access, force, offline is not None)
        for file in files[1:]:
            # The commit of the first file: a push in between must not mix two versions.
            _fetch(library, name, file, first.parent.name, access, force, offline is not None)
    except library.errors.LocalEntryNotFoundError:
        told = f" ({offline})" if offline else ""
        raise Failure(
            f"cannot reach {access.address}{told}, and {name} was not downloaded before; try again with a network"
        ) from None
    return first.parent


def _fetch(
    library: Any, name: HubName, file: str, revision: str, access: Access, force: bool, only_cached: bool
) -> Path:
    with _told(library, name, file, access):
        found = library.hf_hub_download(
            name.name,
            file,
            revision=revision,
            force_download=force,
            local_files_only=only_cached,
            **access.options,
        )
    return Path(found)


def _why_unreachable(library: Any, name: HubName, file: str, access: Access) -> str | None:
    """Why the hub cannot be reached, or None. The library itself would try for half a minute before using its cache."""
    url = library.hf_hub_url(name.name, file, revision=name.revision, endpoint=access.address)
    try:
        with _told(library, name, file, access):
            library.get_hf_file_metadata(url, token=access.token, timeout=TIMEOUT_SECONDS, endpoint=access.address)
    except Failure as error:
        return str(error.__cause__ and reason(error.__cause__))
    return None


@contextmanager
def _told(library: Any, name: HubName, what: str, access: Access) -> Iterator[None]:
    """Raise errors of the library as ours, in one sentence each."""
    errors = library.errors
    try:
        with _switched(library.constants):
            yield
    except errors.LocalEntryNotFoundError:
        raise
    except errors.GatedRepoError:
        raise UserError(
            f"{name.name} is gated: accept its terms on {access.address}, then run 'hf auth login'"
        ) from None
    except errors.RepositoryNotFoundError:
        raise UserError(
            f"there is no {name.name} on {access.address}; check the name, or run 'hf auth login' if it is private"
        ) from None
    except errors.RevisionNotFoundError:
        raise UserError(
            f"{name.name} has no revision {shown(name.revision)}; give a branch, a tag or a commit"
        ) from None
    except errors.EntryNotFoundError:
        raise UserError(f"{name} is not an encoder of manicap: it has no {what}") from None
    except errors.HfHubHTTPError as error:
        status = error.response.status_code
        if status in (401, 403):
            raise UserError(
                f"{access.address} does not allow access to {name.name}; run 'hf auth login' with a token that does"
            ) from None
        raise Failure(f"{access.address} answered {status} for {name} ({what}); try again later") from error
    except errors.HFValidationError as error:
        raise UserError(f"{shown(name.name)} is not a name of a hub: {reason(error)}") from None
    except Exception as error:  # any error of the library that sends the requests
        raise Failure(f"cannot transfer {what} of {name}: {reason(error)}; check the network and try again") from error


@contextmanager
def _switched(constants: Any) -> Iterator[None]:
    """Set our switches only during a call, so that other users of the library in this process keep their settings."""
    before = {name: getattr(constants, name) for name in SWITCHES}
    try:
        for name in SWITCHES:
            setattr(constants, name, True)
        yield
    finally:
        for name, value in before.items():
            setattr(constants, name, value)


def upload(directory: Path, name: HubName, access: Access, private: bool | None, message: str) -> str:
    """Upload the files of a directory as one commit, to a new repository if needed; return the commit's address."""
    library = hub_library()
    api = library.HfApi(endpoint=access.address, token=access.token)
    with _told(library, name, "the repository", access):
        api.create_repo(name.name, private=private, exist_ok=True)
        if name.revision != DEFAULT_REVISION:
            api.create_branch(name.name, branch=name.revision, exist_ok=True)
        files = sorted(path for path in directory.iterdir() if path.is_file())
        additions = [library.CommitOperationAdd(path.name, path) for path in files]
        commit = api.create_commit(name.name, additions, commit_message=message, revision=name.revision)
    return str(commit.commit_url)
