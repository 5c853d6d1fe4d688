"""File system kinds from the texts and numbers the systems give; no test depends on the machine it runs on."""

from __future__ import annotations

from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest

from qiju.keeping import filesystem as fs

MOUNTINFO = r"""
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:26 / /home/ana/share rw - nfs4 server:/export rw,vers=4.2
31 22 0:27 / /home/ana/with\040space rw shared:7 - cifs //server/share rw
32 22 0:28 / /tmp rw - tmpfs tmpfs rw
33 22 0:29 / /mnt/c rw - 9p drvfs rw,aname=drvfs
34 22 0:30 / /media/usb rw - fuseblk /dev/sdb1 rw
35 22 0:31 / /home/ana/remote rw - fuse.sshfs ana@host: rw
36 22 8:2 / /home/ana/share/local rw - xfs /dev/sdc1 rw
37 22 0:33 / / rw - overlay overlay rw
"""

MOUNT = """
/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)
/dev/disk3s5 on /System/Volumes/Data (apfs, local, journaled, nobrowse)
//ana@nas._smb._tcp.local/home on /Volumes/home (smbfs, nodev, nosuid, mounted by ana)
nas:/export on /Volumes/with (odd) name (nfs, asynchronous)
"""


@pytest.mark.parametrize(
    ("path", "kind", "name"),
    [
        ("/home/ana/.local/share/qiju", fs.LOCAL, "overlay"),
        ("/home/ana/share/qiju", fs.NETWORK, "nfs4"),
        ("/home/ana/share", fs.NETWORK, "nfs4"),
        ("/home/ana/shared", fs.LOCAL, "overlay"),
        ("/home/ana/share/local/qiju", fs.LOCAL, "xfs"),
        ("/home/ana/with space/qiju", fs.NETWORK, "cifs"),
        ("/tmp/x", fs.MEMORY, "tmpfs"),
        ("/mnt/c/Users/ana", fs.NETWORK, "9p"),
        ("/media/usb/x", fs.LOCAL, "fuseblk"),
        ("/home/ana/remote/x", fs.NETWORK, "fuse.sshfs"),
    ],
)
def test_linux_mount_table_gives_the_deepest_and_last_mount(path: str, kind: str, name: str) -> None:
    found = fs.on_mounts(PurePosixPath(path), fs.parse_mountinfo(MOUNTINFO))
    assert (found.kind, found.name) == (kind, name)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/System/Volumes/Data/Users/ana", fs.LOCAL),
        ("/Volumes/home/qiju", fs.NETWORK),
        ("/Volumes/with (odd) name/qiju", fs.NETWORK),
    ],
)
def test_macos_mount_output_is_read_with_odd_names(path: str, kind: str) -> None:
    assert fs.on_mounts(PurePosixPath(path), fs.parse_mount_output(MOUNT)).kind == kind


def test_an_unknown_fuse_file_system_is_not_trusted() -> None:
    assert fs.classify_type("fuse.rclone") == fs.NETWORK
    assert fs.classify_type("") == fs.UNKNOWN


def test_without_a_mount_table_the_kind_is_unknown() -> None:
    assert fs.on_mounts(PurePosixPath("/x"), []).kind == fs.UNKNOWN


@pytest.mark.parametrize(
    ("path", "number", "kind"),
    [
        (r"C:\Users\ana", 3, fs.LOCAL),
        (r"Z:\share", 4, fs.NETWORK),
        (r"\\server\share\qiju", 3, fs.NETWORK),
        (r"\\?\UNC\server\share", 0, fs.NETWORK),
        (r"\\?\C:\Users\ana", 3, fs.LOCAL),
        (r"Q:\odd", 1, fs.UNKNOWN),
    ],
)
def test_windows_drive_types(path: str, number: int, kind: str) -> None:
    assert fs.on_windows(path, number).kind == kind


@pytest.mark.parametrize(
    ("path", "client"),
    [
        (PurePosixPath("/Users/ana/Library/Mobile Documents/com~apple~CloudDocs/q"), "iCloud Drive"),
        (PurePosixPath("/Users/ana/Library/CloudStorage/GoogleDrive-ana/q"), "a cloud client"),
        (PureWindowsPath(r"C:\Users\ana\OneDrive - Acme\q"), "OneDrive"),
        (PureWindowsPath(r"C:\Users\ana\ONEDRIVE\q"), "OneDrive"),
        (PurePosixPath("/home/ana/Dropbox (Personal)/q"), "Dropbox"),
        (PurePosixPath("/home/ana/dropboxes/q"), None),
        (PurePosixPath("/home/ana/.local/share/qiju"), None),
    ],
)
def test_cloud_folders_are_known_by_name(path: PurePosixPath, client: str | None) -> None:
    found = fs.cloud_by_name(path)
    assert (found.name if found else None) == client


def test_a_synced_folder_is_known_by_its_mark(tmp_path: Path) -> None:
    (tmp_path / "sync" / ".stfolder").mkdir(parents=True)
    found = fs.kind_of(tmp_path / "sync" / "deep" / "not-yet-there")
    assert (found.kind, found.name, found.where) == (fs.CLOUD, "Syncthing", str(tmp_path.resolve() / "sync"))


def test_a_home_with_dropbox_settings_is_not_taken_for_a_synced_folder(tmp_path: Path) -> None:
    (tmp_path / ".dropbox").mkdir()
    assert fs.kind_of(tmp_path / "qiju").kind != fs.CLOUD
