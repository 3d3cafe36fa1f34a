"""The image data on disk: found in a data directory, and hashed again to check that it is unchanged."""

from dataclasses import dataclass
from pathlib import Path

from manicap.images import cifar10, stl10
from manicap.images.archive import Archive, verify_archive
from manicap.images.folder import CACHE, is_decoded, verify_folder
from manicap.images.manifest import MANIFEST, check_files, verify_files

ARCHIVES: dict[str, Archive] = {"cifar10": cifar10.ARCHIVE, "stl10": stl10.ARCHIVE}


@dataclass(frozen=True)
class ImageFiles:
    """A dataset's directory: for CIFAR-10 and STL-10, the one that contains their published folder."""

    kind: str
    """cifar10, stl10 or folder."""
    path: Path

    @property
    def num_bytes(self) -> int:
        """Size of the published files, or of the decoded arrays."""
        inside = CACHE if self.kind == "folder" else ARCHIVES[self.kind].folder
        return sum(file.stat().st_size for file in (self.path / inside).iterdir() if file.is_file())

    def verify(self) -> list[str]:
        """One sentence per file that has changed since it was first read."""
        if self.kind == "folder":
            return verify_folder(self.path)
        archive = ARCHIVES[self.kind]
        folder = self.path / archive.folder
        if not (folder / MANIFEST).is_file():
            names = [file.name for file in sorted(folder.iterdir()) if file.is_file() and file.name[0] != "."]
            check_files(folder, dict.fromkeys(names))
        return [*verify_files(folder), *verify_archive(self.path, archive)]


def find_image_files(path: Path) -> ImageFiles | None:
    """The image data in a directory, if there is any that has been read before or can be hashed."""
    for kind, archive in ARCHIVES.items():
        if path.name == archive.folder and path.is_dir():
            path = path.parent
        if (path / archive.folder).is_dir():
            return ImageFiles(kind, path)
    return ImageFiles("folder", path) if is_decoded(path) else None


def list_image_files(data_dir: Path) -> list[ImageFiles]:
    """Datasets and decoded folders in `data_dir` and one level below."""
    places = [data_dir, *sorted(data_dir.glob("[!.]*"))] if data_dir.is_dir() else []
    found = (find_image_files(path) for path in places if path.is_dir())
    return [files for files in found if files is not None]
