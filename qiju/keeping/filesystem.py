"""What kind of file system a folder lies on, from text and numbers the operating system gives.

SQLite needs working locks and, for WAL, memory shared between processes. Network file systems give neither reliably,
and a folder that a cloud client synchronises is copied file by file in the middle of a write. Both have destroyed
databases, so `doctor` names them. The decisions are pure functions over a mount table, a drive type and a path; only
`kind_of` asks the system.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import NamedTuple

LOCAL, NETWORK, CLOUD, MEMORY, UNKNOWN = "local", "network", "cloud", "memory", "unknown"

NETWORK_TYPES = frozenset(
    {
        "nfs",
        "nfs3",
        "nfs4",
        "cifs",
        "smb",
        "smb2",
        "smb3",
        "smbfs",
        "afpfs",
        "webdav",
        "davfs",
        "davfs2",
        "ncpfs",
        "afs",
        "coda",
        "9p",
        "ceph",
        "glusterfs",
        "lustre",
        "beegfs",
        "gpfs",
        "ocfs2",
        "gfs2",
        "orangefs",
        "pvfs2",
        "panfs",
        "acfs",
        "vboxsf",
        "vmhgfs",
        "prl_fs",
        "virtiofs",
        "sshfs",
        "osxfuse",
        "macfuse",
        "ftpfs",
    }
)
# A FUSE file system is judged by its second name; an unknown one is not trusted with locks.
LOCAL_FUSE = frozenset(
    {
        "fuseblk",
        "fuse.ntfs",
        "fuse.ntfs-3g",
        "fuse.ext2",
        "fuse.exfat",
        "fuse.encfs",
        "fuse.gocryptfs",
    }
)
MEMORY_TYPES = frozenset(
    {
        "tmpfs",
        "ramfs",
    }
)

# A folder of this name (folded) in the path belongs to a cloud client; `prefix` marks names that continue freely.
CLOUD_FOLDERS: tuple[tuple[str, bool, str], ...] = (
    ("dropbox", True, "Dropbox"),
    ("onedrive", True, "OneDrive"),
    ("google drive", False, "Google Drive"),
    ("googledrive", True, "Google Drive"),
    ("my drive", False, "Google Drive"),
    ("mobile documents", False, "iCloud Drive"),
    ("iclouddrive", False, "iCloud Drive"),
    ("cloudstorage", False, "a cloud client"),
    ("box sync", False, "Box"),
    ("pclouddrive", False, "pCloud"),
    ("pcloud drive", False, "pCloud"),
    ("megasync", False, "MEGA"),
    ("nextcloud", True, "Nextcloud"),
    ("owncloud", True, "ownCloud"),
    ("yandex.disk", True, "Yandex Disk"),
    ("creative cloud files", False, "Creative Cloud"),
    ("proton drive", False, "Proton Drive"),
    ("synologydrive", True, "Synology Drive"),
    ("seafile", True, "Seafile"),
)
# Files and folders by which a client marks the folder it synchronises, whatever its name.
CLOUD_MARKS: tuple[tuple[str, str], ...] = (
    (".stfolder", "Syncthing"),
    (".dropbox", "Dropbox"),
    (".owncloudsync.log", "ownCloud"),
    (".nextcloudsync.log", "Nextcloud"),
    (".tmp.drivedownload", "Google Drive"),
)

_WINDOWS_DRIVES = {2: (LOCAL, "removable"), 3: (LOCAL, "fixed"), 4: (NETWORK, "network drive"), 6: (MEMORY, "RAM disk")}


class FileSystem(NamedTuple):
    """`kind`: local, network, cloud, memory or unknown; `name`: the type or client; `where`: the mount or folder."""

    kind: str
    name: str
    where: str


class Mount(NamedTuple):
    point: str
    type: str
    source: str


def parse_mountinfo(text: str) -> list[Mount]:
    """Linux's `/proc/self/mountinfo`; later lines lie over earlier ones."""
    mounts = []
    for line in text.splitlines():
        before, dash, after = line.partition(" - ")
        fields, behind = before.split(" "), after.split(" ")
        if dash and len(fields) >= 5 and len(behind) >= 2:
            mounts.append(Mount(_unescape(fields[4]), behind[0], _unescape(behind[1])))
    return mounts


def parse_mount_output(text: str) -> list[Mount]:
    """The `mount` command of macOS and the BSDs: `source on /point (type, option, ...)`."""
    mounts = []
    for line in text.splitlines():
        head, paren, tail = line.rpartition(" (")
        source, on, point = head.partition(" on ")
        if paren and on:
            mounts.append(Mount(point, tail.rstrip(")").split(",")[0].strip(), source))
    return mounts


def classify_type(name: str, source: str = "") -> str:
    """The kind of a file system type as the mount table spells it."""
    folded = name.casefold()
    if folded in LOCAL_FUSE:
        return LOCAL
    # WSL reaches Windows drives, and virtual machines their host's folders, through a protocol without shared memory.
    if folded in NETWORK_TYPES or folded.startswith("fuse") or source.startswith("//"):
        return NETWORK
    if folded in MEMORY_TYPES:
        return MEMORY
    return LOCAL if folded else UNKNOWN


def on_mounts(path: PurePath, mounts: Iterable[Mount]) -> FileSystem:
    """The file system of an absolute, resolved path: the deepest mount point above it, the last one of equals."""
    best: Mount | None = None
    for mount in mounts:
        if _below(path, mount.point) and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    if best is None:
        return FileSystem(UNKNOWN, "", str(path))
    return FileSystem(classify_type(best.type, best.source), best.type, best.point)


def on_windows(path: str, drive_type: int) -> FileSystem:
    """The kind of a Windows path from `GetDriveTypeW`'s number; a UNC path is on the network whatever the number."""
    if path.startswith(("\\\\?\\UNC\\", "//?/UNC/")) or (path[:2] in ("\\\\", "//") and path[2:3] not in ("?", ".")):
        return FileSystem(NETWORK, "UNC share", path)
    kind, name = _WINDOWS_DRIVES.get(drive_type, (UNKNOWN, "unknown drive"))
    return FileSystem(kind, name, path)


def cloud_by_name(path: PurePath) -> FileSystem | None:
    """The cloud client whose folder the path lies in, judged by the folders' names alone."""
    for depth, part in enumerate(path.parts):
        folded = part.casefold()
        for name, prefix, client in CLOUD_FOLDERS:
            if folded == name or (prefix and folded.startswith((name + " ", name + "-", name + "("))):
                return FileSystem(CLOUD, client, str(type(path)(*path.parts[: depth + 1])))
    return None


def kind_of(path: Path) -> FileSystem:
    """Ask the system about a path that may not exist yet. Anything the system does not say is `unknown`."""
    resolved = path.resolve()
    while not resolved.exists() and resolved != resolved.parent:
        resolved = resolved.parent
    cloud = cloud_by_name(path.resolve()) or _cloud_by_mark(resolved)
    if cloud is not None:
        return cloud
    if sys.platform == "win32":
        return on_windows(str(resolved), _windows_drive_type(resolved))
    if sys.platform.startswith("linux"):
        try:
            text = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return FileSystem(UNKNOWN, "", str(resolved))
        return on_mounts(resolved, parse_mountinfo(text))
    return on_mounts(resolved, parse_mount_output(_run_mount()))


def risk(path: Path) -> str:
    """Why a store should not lie at `path`, as a sentence, or '' when nothing speaks against it."""
    found = kind_of(path)
    if found.kind == NETWORK:
        return f"{found.where} is a network file system ({found.name}): locks there can fail and destroy a database"
    if found.kind == CLOUD:
        return f"{found.where} is synchronised by {found.name}, which copies a database in the middle of a write"
    return ""


def _cloud_by_mark(folder: Path) -> FileSystem | None:
    for parent in (folder, *folder.parents):
        for name, client in CLOUD_MARKS:
            # A home folder holds Dropbox's own settings as ~/.dropbox; only a file of that name marks a synced folder.
            mark = parent / name
            if mark.is_dir() if name == ".stfolder" else mark.is_file():
                return FileSystem(CLOUD, client, str(parent))
    return None


def _below(path: PurePath, point: str) -> bool:
    return path == PurePath(point) or PurePath(point) in path.parents


def _unescape(text: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text


def _run_mount() -> str:
    import subprocess

    try:
        done = subprocess.run(["/sbin/mount"], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


def _windows_drive_type(path: Path) -> int:
    if sys.platform != "win32":
        return 0
    import ctypes

    return int(ctypes.windll.kernel32.GetDriveTypeW(path.drive + os.sep))
