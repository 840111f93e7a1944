"""What a snippet sees of the file system: the system, its toolchain and its own folders, no more.

Homes, sockets, disks and other runs are not forbidden in this view: they do not exist. A zygote
builds it once, in namespaces that two descriptors keep alive, and each snippet enters it.
Standard library only.
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

# linux/sched.h, linux/mount.h
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_BIND, MS_REC, MS_PRIVATE, MS_NOSUID, MS_NOSUID_NODEV = 4096, 16384, 1 << 18, 2, 2 | 4
MNT_DETACH, AT_RECURSIVE, ATTR_RDONLY, ATTR_NOSUID = 2, 0x8000, 1, 2
MOUNT_SETATTR, PIVOT_ROOT = 442, {"x86_64": 155, "aarch64": 41}

SYSTEM = (
    *("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/etc", "/nix", "/gnu/store"),
    *("/opt/nvidia", "/opt/rocm", "/opt/intel", "/run/opengl-driver", "/etc/resolv.conf"),
    # the parts of /sys that describe the hardware; no control groups, no tracing, no firmware
    *("/sys/block", "/sys/bus", "/sys/class", "/sys/dev", "/sys/devices", "/sys/module"),
    "/sys/kernel/mm",
)
DEVICES = (
    *("null", "zero", "full", "random", "urandom", "tty"),
    *("nvidia*", "dri", "kfd", "dxg", "infiniband", "gdrdrv"),
)
"""Patterns below /dev: above all no disk, which root could read whatever its files permit."""
KERNEL = ("/sys", "/sysrq-trigger", "/irq", "/bus", "/fs", "/acpi", "/scsi")
"""Parts of /proc that belong to the kernel and not to a process; root could write to them."""
TOOLS = ("nvcc", "ptxas", "c++", "g++", "gcc", "cc", "clang", "ninja", "cmake", "bash")
WIDE = ("/", "/dev", "/home", "/media", "/mnt", "/opt", "/proc", "/run", "/srv", "/sys", "/tmp")
"""Directories never exposed as a whole, even if PATH or CUDA_HOME names one. Home directories are
added at run time."""
IN_MEMORY = {"/tmp": "mode=1777,size=1g", "/dev/shm": "mode=1777"}
"""Folders that each snippet has its own of, in memory; values are mount options."""

HIDDEN = ("/.git", "/.env", "/pip.conf")
"""What of a folder that is shown is covered: it may hold credentials."""

libc = ctypes.CDLL(None, use_errno=True)
for name in ("capset", "mount", "prctl", "setns", "syscall", "unshare"):
    getattr(libc, name, None)  # looked up once, and not in every fork; macOS lacks most


class View:
    """A view that has been built."""

    def __init__(self, user: int, mounts: int, roots: list[str], links: dict[str, str]) -> None:
        self.user, self.mounts = user, mounts
        """Descriptors of its namespaces."""
        self.roots, self.links = roots, links
        """Paths and links of it that each snippet's own /tmp and /dev/shm would cover."""


def checked(result: int) -> int:
    """The result of a system call, unless it is an error."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    """Attaches a file system or, with MS_BIND, a folder or file.

    source: what is attached; target: where; kind: of the file system, None with MS_BIND.
    options: of the file system, as in `size=1g`.
    """
    name = kind.encode() if kind else None
    paths = os.fsencode(source), os.fsencode(target)
    checked(libc.mount(*paths, name, flags, options.encode() or None))


def below(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


# What is shown


def visible(readable: list[str]) -> tuple[list[str], dict[str, str]]:
    """The real paths that are shown, none below another, and links to them: name → real path.

    `readable` are absolute paths to show besides those of the system and of the toolchain.
    """
    homes = {user.pw_dir for user in pwd.getpwall() if user.pw_uid in (0, os.getuid())}
    homes |= {home + "/.local" for home in homes}  # it holds data of every kind beside programs
    wide = {os.path.realpath(path) for path in (*WIDE, *homes)}
    paths, names = set(), set()
    for name in (*SYSTEM, *toolchain_folders(), *readable):
        name = os.path.normpath(name)
        real = os.path.realpath(name)
        if not os.path.isabs(name) or not os.path.exists(real):
            continue
        if any(below(path, real) for path in wide):  # it is one of them, or holds one
            continue
        paths.add(real)
        names.add(name)
    roots = [path for path in sorted(paths) if not any(below(path, p) for p in paths - {path})]
    links: dict[str, str] = {}
    for name in sorted(names):
        real = os.path.realpath(name)
        if name != real and not any(below(name, path) for path in (*roots, *links)):
            links[name] = real
    return roots, links


def toolchain_folders() -> list[str]:
    """Folders that this interpreter, its modules and the programs on the PATH come from."""
    folders = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix]
    folders += [os.path.dirname(os.path.abspath(__file__)), *sys.path]
    for variable in ("PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH"):
        folders += os.environ.get(variable, "").split(os.pathsep)
    compilers = [os.environ.get(name) or "cc" for name in ("CC", "CXX", "CUDAHOSTCXX")]
    programs = [shutil.which(name) for name in (*TOOLS, *compilers, sys.executable)]
    for program in programs:
        for name in (os.path.abspath(program), os.path.realpath(program)) if program else ():
            folder = os.path.dirname(name)
            if os.path.basename(folder) == "bin":  # its libraries are beside it
                folders.append(os.path.dirname(folder))
    return folders


def private_paths(folder: str) -> list[str]:
    """The paths below a folder that not everyone may read: as root, a snippet could."""
    private = []
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(parent, name)
            try:
                mode = os.lstat(path).st_mode
            except OSError:
                continue
            public = stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(mode) else 0)
            if mode & public != public:
                private.append(path)
                if name in folders:
                    folders.remove(name)
    return private


def devices() -> list[str]:
    """The devices that are shown."""
    if os.path.exists("/dev/nvidiactl") and not os.path.exists("/dev/nvidia-uvm"):
        modprobe = shutil.which("nvidia-modprobe")
        if modprobe:  # CUDA would call it, but inside the view it cannot make a device
            subprocess.run([modprobe, "-u", "-c", "0"], check=False)
    return [path for name in DEVICES for path in glob.glob("/dev/" + name)]


# How it is built


def prepare(folder: str, readable: list[str]) -> View:
    """Builds the view, with `folder` to write in, in a child that keeps nothing else alive.

    Raises:
        OSError: the kernel does not allow it.
    """
    roots, links = visible(readable)
    receiver, sender = socket.socketpair()
    with receiver, sender:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                build(folder, roots, links)
                spaces = [os.open("/proc/self/ns/" + name, os.O_RDONLY) for name in ("user", "mnt")]
                socket.send_fds(sender, [b"built"], spaces)
                status = 0
            except BaseException as error:
                sender.send(("%s" % error).encode()[:300])
            finally:
                os._exit(status)
        message, spaces, _, _ = socket.recv_fds(receiver, 300, 2)
        os.waitpid(pid, 0)
    if not spaces:
        raise OSError(message.decode("utf-8", "replace"))
    user, mounts = spaces
    covered_roots = [path for path in roots if is_covered(path)]
    covered_links = {name: path for name, path in links.items() if is_covered(name)}
    return View(user, mounts, covered_roots, covered_links)


def is_covered(path: str) -> bool:
    """Whether a path lies below a folder that each snippet has its own of."""
    return any(below(path, folder) for folder in IN_MEMORY)


def build(folder: str, roots: list[str], links: dict[str, str]) -> None:
    """Makes the view the root of this process, in namespaces of its own.

    folder: shown, and the only one that can be written to.
    roots: real paths that are shown read-only; links: name → one of them, or a path below one.

    The order of the phases matters. What a mount covers can no longer be reached, and what is
    mounted below a folder after that folder became read-only would not be read-only itself.
    """
    hidden = private_paths("/etc") + [path + name for path in roots for name in HIDDEN]
    device_files = devices()
    new_user(CLONE_NEWNS)
    begin_root()
    for path in roots:
        show(path)
    hide(hidden)
    for path in device_files:  # a device can be written to on a read-only mount
        show(path)
    for path in (*roots, *device_files):
        set_attributes(AT_RECURSIVE, "/new" + path, ATTR_RDONLY | ATTR_NOSUID)
    for path in filter(None, ("/proc", folder)):
        show(path)
    protect_kernel_files()
    link(links)
    enter_root()


def begin_root() -> None:
    """Moves the old root to /old of a new file system, in which /new is to become the root."""
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    mount("view", "/tmp", "tmpfs", MS_NOSUID_NODEV)
    os.mkdir("/tmp/old")
    os.mkdir("/tmp/new")
    pivot("/tmp", "/tmp/old")
    mount("view", "/new", "tmpfs", MS_NOSUID_NODEV)
    os.umask(0o022)
    for name in ("dev/shm", "dev/pts", "tmp", "var/tmp", "run", "hidden"):
        os.makedirs("/new/" + name)


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


def hide(paths: list[str]) -> None:
    """Covers files and folders of the new root with an empty file or folder."""
    open("/new/hidden/file", "w").close()
    os.mkdir("/new/hidden/folder")
    for path in paths:
        if os.path.lexists("/new" + path) and not os.path.islink("/new" + path):
            kind = "folder" if os.path.isdir("/new" + path) else "file"
            mount("/new/hidden/" + kind, "/new" + path, None, MS_BIND)


def protect_kernel_files() -> None:
    """Makes the kernel's own part of /proc read-only; the files of processes stay as they are."""
    for path in glob.glob("/new/proc/[!0-9]*"):
        if path.endswith(KERNEL):
            mount(path, path, None, MS_BIND | MS_REC)  # binfmt_misc may be mounted below
            set_attributes(AT_RECURSIVE, path, ATTR_RDONLY)


def link(links: dict[str, str]) -> None:
    """Makes these links, name → path, and those that programs expect in /dev."""
    for name, path in links.items():
        os.makedirs(os.path.dirname("/new" + name), exist_ok=True)
        os.symlink(path, "/new" + name)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink("/proc/self/fd/%d" % number, "/new/dev/" + name)
    os.symlink("/proc/self/fd", "/new/dev/fd")
    os.symlink("pts/ptmx", "/new/dev/ptmx")


def enter_root() -> None:
    """Makes /new the root, read-only itself, and lets go of the old one."""
    set_attributes(0, "/new", ATTR_RDONLY)
    os.chdir("/new")
    pivot(".", ".")
    checked(libc.umount2(b".", MNT_DETACH))
    os.chdir("/")


def set_attributes(flags: int, path: str, attributes: int) -> None:
    """Sets attributes of a mount and keeps those that it has; needs Linux 5.12.

    Args:
        flags: Of `mount_setattr`, as in `AT_RECURSIVE`.
        path: Where the mount stands.
        attributes: Bits to set, as in `MOUNT_ATTR_RDONLY`.
    """
    fields = (ctypes.c_uint64 * 4)(attributes, 0, 0, 0)
    checked(libc.syscall(MOUNT_SETATTR, -100, os.fsencode(path), flags, fields, 32))


def pivot(new: str, old: str) -> None:
    """Makes a mount the root, and puts the old root into a folder.

    Raises:
        OSError: the number of the system call is not known for this processor, or it fails.
    """
    number = PIVOT_ROOT.get(os.uname().machine)
    if number is None:
        raise OSError("no view for the processor %s" % os.uname().machine)
    checked(libc.syscall(number, os.fsencode(new), os.fsencode(old)))
    if new != old:
        os.chdir("/")


def new_user(spaces: int) -> None:
    """Enters a new user namespace, in which the user keeps its id, and more namespaces with it."""
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


def join(view: View) -> None:
    """Enters the namespaces of the view; the working folder is then `/`."""
    checked(libc.setns(view.user, CLONE_NEWUSER))
    checked(libc.setns(view.mounts, CLONE_NEWNS))


def attach_own_folders(view: View, scratch: str, modules: str, shared_tmp: str) -> None:
    """Gives a snippet its own /tmp and /dev/shm, and of all runs only its own folder.

    Called in a copy of the view's mounts.

    scratch: the folder of the run.
    modules: the folder that holds `kbtools.repro`.
    shared_tmp: the zygote's temporary folder; it becomes a link to the run's.
    """
    runs = os.path.dirname(scratch)
    paths = [scratch, modules, *view.roots]
    handles = [os.open(path, os.O_PATH) for path in paths]
    covers = dict(IN_MEMORY)
    if not is_covered(runs):
        covers[runs] = ""
    for cover, options in covers.items():
        mount("own", cover, "tmpfs", MS_NOSUID_NODEV, options)
        for path, handle in zip(paths, handles):
            if below(path, cover):
                os.makedirs(path)
                mount("/proc/self/fd/%d" % handle, path, None, MS_BIND | MS_REC)
    for handle in handles:
        os.close(handle)
    for name, path in view.links.items():
        os.makedirs(os.path.dirname(name), exist_ok=True)
        os.symlink(path, name)
    os.symlink(scratch + "/tmp", shared_tmp)


def cover_devices(paths: list[str]) -> None:
    """Covers device files with a file that cannot be opened for writing, as CUDA opens a GPU's.

    Called in a copy of the view's mounts. paths: as in `/dev/nvidia1`; what the view does not
    show is passed over.
    """
    for path in paths:
        if os.path.exists(path):
            mount("/hidden/file", path, None, MS_BIND)
