"""What a snippet sees of the file system: the system, its toolchain and its own folders, no more.

Homes, sockets, disks and other runs are not forbidden there: they do not exist. The view is built
once for a zygote, in namespaces of its own that two descriptors keep alive, and each snippet
enters them. Standard library only.
"""

from __future__ import annotations

import ctypes
import glob
import os
import pwd
import shutil
import socket
import stat
import subprocess
import sys
from types import SimpleNamespace

# linux/sched.h, linux/mount.h
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_BIND, MS_REC, MS_PRIVATE, MS_NOSUID, MS_NOSUID_NODEV = 4096, 16384, 1 << 18, 2, 2 | 4
MNT_DETACH, AT_RECURSIVE, ATTR_RDONLY, ATTR_NOSUID = 2, 0x8000, 1, 2
MOUNT_SETATTR, PIVOT_ROOT = 442, {"x86_64": 155, "aarch64": 41}

SYSTEM = (
    *("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/etc", "/nix", "/gnu/store"),
    *("/opt/nvidia", "/opt/rocm", "/opt/intel", "/run/opengl-driver", "/etc/resolv.conf"),
    # of /sys what says which hardware there is; no control groups, no tracing, no firmware
    *("/sys/block", "/sys/bus", "/sys/class", "/sys/dev", "/sys/devices", "/sys/module"),
    "/sys/kernel/mm",
)
DEVICES = (
    *("null", "zero", "full", "random", "urandom", "tty"),
    *("nvidia*", "dri", "kfd", "dxg", "infiniband", "gdrdrv"),
)
"""Patterns below /dev: above all no disk, which root could read past every permission."""
KERNEL = ("/sys", "/sysrq-trigger", "/irq", "/bus", "/fs", "/acpi", "/scsi")
"""What below /proc is the kernel's and not of a process; root could write to it."""
TOOLS = ("nvcc", "ptxas", "c++", "g++", "gcc", "cc", "clang", "ninja", "cmake", "bash")
WIDE = ("/", "/dev", "/home", "/media", "/mnt", "/opt", "/proc", "/run", "/srv", "/sys", "/tmp")
"""Folders that are never shown whole, though a variable may name them; homes come to these."""
IN_MEMORY = {"/tmp": "mode=1777,size=1g", "/dev/shm": "mode=1777"}
"""Folders that a snippet has its own of, and their options; TMPDIR names one on the disk."""

libc = ctypes.CDLL(None, use_errno=True)
for name in ("capset", "mount", "prctl", "setns", "syscall", "unshare"):
    getattr(libc, name, None)  # found once, and not by every fork; macOS has none of most


def checked(result: int) -> int:
    """The result of a system call, unless it is an error."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    """Attaches a file system or, with MS_BIND, a folder or file."""
    source, target, name = os.fsencode(source), os.fsencode(target), kind and kind.encode()
    checked(libc.mount(source, target, name, flags, options.encode() or None))


def below(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


# What is shown


def visible(readable: list) -> tuple[list, dict]:
    """The real paths that are shown, none below another, and links to them: name → real path."""
    homes = {one.pw_dir for one in pwd.getpwall() if one.pw_uid in (0, os.getuid())}
    homes |= {one + "/.local" for one in homes}  # beside its programs are data of every kind
    wide = {os.path.realpath(one) for one in (*WIDE, *homes)}
    roots, names = set(), set()
    for name in (*SYSTEM, *of_the_toolchain(), *readable):
        name = os.path.normpath(name)
        real = os.path.realpath(name)
        if not os.path.isabs(name) or not os.path.exists(real):
            continue
        if any(below(one, real) for one in wide):  # it is one of them, or holds one
            continue
        roots.add(real)
        names.add(name)
    shown = [one for one in sorted(roots) if not any(below(one, r) for r in roots - {one})]
    links = {}
    for name in sorted(names):
        real = os.path.realpath(name)
        if name != real and not any(below(name, one) for one in (*shown, *links)):
            links[name] = real
    return shown, links


def of_the_toolchain() -> list:
    """Folders that this interpreter, its modules and the programs on the PATH come from."""
    found = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix]
    found += [os.path.dirname(os.path.abspath(__file__)), *sys.path]
    for variable in ("PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH"):
        found += os.environ.get(variable, "").split(os.pathsep)
    compilers = [os.environ.get(name) or "cc" for name in ("CC", "CXX", "CUDAHOSTCXX")]
    programs = [shutil.which(one) for one in (*TOOLS, *compilers, sys.executable)]
    for program in filter(None, programs):
        for name in (os.path.abspath(program), os.path.realpath(program)):
            folder = os.path.dirname(name)
            if os.path.basename(folder) == "bin":  # its libraries are beside it
                found.append(os.path.dirname(folder))
    return found


def private(folder: str) -> list:
    """What below a folder only some may read: as root, a snippet could."""
    found = []
    for here, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(here, name)
            try:
                mode = os.lstat(path).st_mode
            except OSError:
                continue
            wanted = stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(mode) else 0)
            if mode & wanted != wanted:
                found.append(path)
                if name in folders:
                    folders.remove(name)
    return found


def devices() -> list:
    """The devices that are shown."""
    if os.path.exists("/dev/nvidiactl") and not os.path.exists("/dev/nvidia-uvm"):
        modprobe = shutil.which("nvidia-modprobe")
        if modprobe:  # CUDA would call it, but within it could make no device
            subprocess.run([modprobe, "-u", "-c", "0"], check=False)
    return [path for name in DEVICES for path in glob.glob("/dev/" + name)]


# How it is made


def prepare(folder: str, readable: list) -> SimpleNamespace:
    """Builds the view, with this folder to write in; what `join` takes.

    Raises:
        OSError: the kernel does not allow it.
    """
    roots, links = visible(readable)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                build(folder, roots, links)
                spaces = [os.open("/proc/self/ns/" + name, os.O_RDONLY) for name in ("user", "mnt")]
                socket.send_fds(theirs, [b"made"], spaces)
                status = 0
            except BaseException as error:
                theirs.send(("%s" % error).encode()[:300])
            finally:
                os._exit(status)
        said, spaces, _, _ = socket.recv_fds(ours, 300, 2)
        os.waitpid(pid, 0)
    if not spaces:
        raise OSError(said.decode("utf-8", "replace"))
    covered = [one for one in roots if any(below(one, cover) for cover in IN_MEMORY)]
    linked = {k: v for k, v in links.items() if any(below(k, cover) for cover in IN_MEMORY)}
    return SimpleNamespace(user=spaces[0], mounts=spaces[1], roots=covered, links=linked)


def build(folder: str, roots: list, links: dict) -> None:
    """Makes the view the root of this process, in namespaces of its own."""
    secrets = private("/etc")
    secrets += [one + name for one in roots for name in ("/.git", "/.env", "/pip.conf")]
    shown = devices()
    new_user(CLONE_NEWNS)
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    # the old root becomes /old of a file system of ours, the new one is built in /new
    mount("view", "/tmp", "tmpfs", MS_NOSUID_NODEV)
    os.mkdir("/tmp/old")
    os.mkdir("/tmp/new")
    pivot("/tmp", "/tmp/old")
    mount("view", "/new", "tmpfs", MS_NOSUID_NODEV)
    os.umask(0o022)
    for name in ("dev/shm", "dev/pts", "tmp", "var/tmp", "run", "hidden"):
        os.makedirs("/new/" + name)
    open("/new/hidden/file", "w").close()
    os.mkdir("/new/hidden/folder")
    for path in roots:
        show(path)
    for path in secrets:
        if os.path.lexists("/new" + path) and not os.path.islink("/new" + path):
            kind = "folder" if os.path.isdir("/new" + path) else "file"
            mount("/new/hidden/" + kind, "/new" + path, None, MS_BIND)
    for path in shown:  # read-only: a device can be written to, but not be given another owner
        show(path)
    for path in (*roots, *shown):
        attribute(AT_RECURSIVE, "/new" + path, ATTR_RDONLY | ATTR_NOSUID)
    for path in filter(None, ("/proc", folder)):
        show(path)
    for path in glob.glob("/new/proc/[!0-9]*"):
        if path.endswith(KERNEL):
            mount(path, path, None, MS_BIND | MS_REC)  # something may be mounted below, binfmt_misc
            attribute(AT_RECURSIVE, path, ATTR_RDONLY)
    for name, real in links.items():
        os.makedirs(os.path.dirname("/new" + name), exist_ok=True)
        os.symlink(real, "/new" + name)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink("/proc/self/fd/%d" % number, "/new/dev/" + name)
    os.symlink("/proc/self/fd", "/new/dev/fd")
    os.symlink("pts/ptmx", "/new/dev/ptmx")
    attribute(0, "/new", ATTR_RDONLY)
    os.chdir("/new")
    pivot(".", ".")
    checked(libc.umount2(b".", MNT_DETACH))
    os.chdir("/")


def show(path: str) -> None:
    """Puts a folder or file of the old root at its place in the new one."""
    target = "/new" + path
    if os.path.isdir("/old" + path):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if not os.path.exists(target):
            open(target, "w").close()
    mount("/old" + path, target, None, MS_BIND | MS_REC)


def attribute(flags: int, path: str, wanted: int) -> None:
    """Sets attributes of a mount and keeps those that it has; needs Linux 5.12."""
    fields = (ctypes.c_uint64 * 4)(wanted, 0, 0, 0)
    checked(libc.syscall(MOUNT_SETATTR, -100, os.fsencode(path), flags, fields, 32))


def pivot(new: str, old: str) -> None:
    """Makes a mount the root, and puts the old root into a folder."""
    number = PIVOT_ROOT.get(os.uname().machine)
    if number is None:
        raise OSError("no view for the processor %s" % os.uname().machine)
    checked(libc.syscall(number, os.fsencode(new), os.fsencode(old)))
    if new != old:
        os.chdir("/")


def new_user(spaces: int) -> None:
    """A user namespace of its own, in which the user is who it was, and more namespaces with it."""
    uid, gid = os.getuid(), os.getgid()
    checked(libc.unshare(CLONE_NEWUSER | spaces))
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", "%d %d 1" % (uid, uid)),
        ("gid_map", "%d %d 1" % (gid, gid)),
    ):
        with open("/proc/self/" + name, "w") as file:
            file.write(text)


# How a snippet enters it


def join(view: SimpleNamespace) -> None:
    """Enters the namespaces of the view; the working folder is then `/`."""
    checked(libc.setns(view.user, CLONE_NEWUSER))
    checked(libc.setns(view.mounts, CLONE_NEWNS))


def own_folders(view: SimpleNamespace, scratch: str, path: str, shared_tmp: str) -> None:
    """In a copy of the view's mounts: a /tmp and /dev/shm of its own, and of all runs only its own.

    `path` holds `kbtools.repro`; `shared_tmp` is the temporary folder that the zygote's modules
    have noted.
    """
    folder = os.path.dirname(scratch)
    kept = [scratch, path, *view.roots]
    handles = [os.open(one, os.O_PATH) for one in kept]
    covers = dict(IN_MEMORY)
    if not any(below(folder, one) for one in covers):
        covers[folder] = ""
    for cover, options in covers.items():
        mount("own", cover, "tmpfs", MS_NOSUID_NODEV, options)
        for one, handle in zip(kept, handles):
            if below(one, cover):
                os.makedirs(one)
                mount("/proc/self/fd/%d" % handle, one, None, MS_BIND | MS_REC)
    for handle in handles:
        os.close(handle)
    for name, real in view.links.items():
        os.makedirs(os.path.dirname(name), exist_ok=True)
        os.symlink(real, name)
    os.symlink(scratch + "/tmp", shared_tmp)
