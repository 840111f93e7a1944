"""Shuts the process that calls it in, as a snippet's has to be. Standard library only.

docs/sandbox.md says what a snippet cannot reach, and why. `trial` finds out which parts of the
sandbox the kernel allows; `enter` leaves out the other parts, and fails if an allowed one fails.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import sys

import filesystem_view
from filesystem_view import CLONE_NEWNS, MS_BIND, MS_NOSUID, MS_NOSUID_NODEV, checked, libc, mount

TYPE_CHECKING = False  # see zygote.py
if TYPE_CHECKING:
    from kbtools.running.protocol import Request, SandboxParts

PARTS = ("network", "sight", "files", "signals")
"""Of the sandbox: `sight` is what there is to be seen, `files` is changing them."""
# linux/sched.h
CLONE_NEWIPC, CLONE_NEWNET = 0x08000000, 0x40000000
# linux/sockios.h, linux/if.h
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
# linux/landlock.h: the rights to change files; those above bit 12 came with ABI 2 and 3
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
WRITE = (1 << 1) | sum(1 << bit for bit in range(4, 13))
READ = (1 << 2) | (1 << 3)
REFER, TRUNCATE = 1 << 13, 1 << 14
OF_FILES = (1 << 1) | (1 << 2) | TRUNCATE
SCOPE_ABSTRACT_SOCKETS, SCOPE_SIGNAL = 1 << 0, 1 << 1
# linux/prctl.h, linux/capability.h
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
CAPSET_HEADER = struct.pack("=Ii", 0x20080522, 0)
# linux/audit.h, asm/unistd.h: the machine's mark, the numbers of `socket` and of `add_key`, which
# `request_key` and `keyctl` follow
MACHINE = os.uname().machine
MACHINES = {"x86_64": (0xC000003E, 41, 248), "aarch64": (0xC00000B7, 198, 217)}
IO_URING_SETUP, EAFNOSUPPORT, ENOSYS = 425, 97, 38
FAMILIES = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6, AF_NETLINK. Network namespaces do not shut in most other families,
above all vsock."""


class Shared:
    """What all snippets of a zygote share of the sandbox."""

    def __init__(self) -> None:
        self.view: filesystem_view.View | None = None
        self.why_no_view = ""
        self.allowed: SandboxParts = {}
        self.store = False
        """Whether the toolchain's store is shown."""
        # if there is no view, these are all that Landlock lets a snippet read, or write
        self.readable: list[str] = []
        self.devices: list[str] = []


def enter(request: Request, shared: Shared) -> None:
    """Shuts this single-threaded process in with the parts of the sandbox that `trial` allowed.

    Raises:
        OSError: the kernel does not allow a part any more.
    """
    allowed, scratch, modules = shared.allowed, request["scratch"], request["modules"]
    writable, readable = [scratch, process_files(allowed)], None
    alone = allowed["network"] is True and not request["network"]
    if shared.view and allowed["sight"] is True:
        isolate(shared.view)
        filesystem_view.attach_own_folders(shared.view, scratch, modules, request["shared_tmp"])
        mount("pts", "/dev/pts", "devpts", MS_NOSUID, "newinstance,ptmxmode=0666,mode=620")
        filesystem_view.cover_devices(request["hidden_devices"])
        writable += ["/tmp", "/dev"]
    else:
        writable += [request["shared_tmp"], *shared.devices]
        if allowed["network"] is True:
            isolate(None)
            mount(scratch + "/tmp", request["shared_tmp"], None, MS_BIND)
            if not filesystem_view.below(scratch, "/dev/shm"):  # so that it ends with the run
                mount("shm", "/dev/shm", "tmpfs", MS_NOSUID_NODEV)
        readable = [modules, "/proc", *shared.readable]
    if alone:
        no_network()
    if sys.platform == "linux":
        give_up_powers()
    if allowed["files"] is True:
        landlock(writable, readable)
    if allowed["network"] is True:
        refuse_calls()


def process_files(allowed: SandboxParts) -> str:
    """The part of /proc that may be written to.

    CUDA writes the names of its threads there. If only the first process of a snippet may write,
    CUDA ends with error 304 in its other processes. The kernel's own files stay read-only.
    """
    kernel_is_safe = allowed["sight"] is True or not os.access("/proc/sys/kernel/panic", os.W_OK)
    return "/proc" if kernel_is_safe else "/proc/self"


def trial(shared: Shared) -> SandboxParts:
    """Which parts of the sandbox this kernel allows: tried on this process, which must then end."""
    allowed: SandboxParts = {}

    def network() -> None:
        if allowed["sight"] is not True:
            isolate(None)
        no_network()
        give_up_powers()
        refuse_calls()

    def sight() -> None:
        if not shared.view:
            raise OSError(shared.why_no_view)
        isolate(shared.view)

    for name, attempt in (
        ("signals", scoped),
        ("sight", sight),
        ("network", network),
        ("files", lambda: landlock(["/proc/self"])),
    ):
        try:
            attempt()
            allowed[name] = True
        except (OSError, AttributeError) as error:  # macOS has no such functions
            allowed[name] = str(error)
    return {name: allowed[name] for name in PARTS}


def isolate(view: filesystem_view.View | None) -> None:
    """Gives this process mounts and System V shared memory of its own, in the view if given."""
    spaces = CLONE_NEWNS | CLONE_NEWIPC
    if view:
        filesystem_view.join(view)
        checked(libc.unshare(spaces))
    else:
        filesystem_view.new_user(spaces)
        mount("none", "/", None, filesystem_view.MS_REC | filesystem_view.MS_PRIVATE)


def no_network() -> None:
    """Gives this process a network with nothing but a loopback."""
    checked(libc.unshare(CLONE_NEWNET))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as loopback:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(loopback, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(loopback, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


def give_up_powers() -> None:
    """Drops all capabilities; no program that is run can give one back."""
    checked(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    checked(libc.capset(CAPSET_HEADER, b"\0" * 24))


def refuse_calls() -> None:
    """Refuses sockets and keyrings that namespaces do not shut in, and io_uring.

    io_uring would make these calls without passing the filter.
    """
    if not FILTER:
        raise OSError("no filter for the processor %s" % MACHINE)
    checked(libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, PROGRAM, 0, 0))


def filter_of(mark: int, number_of_socket: int, first_of_keys: int) -> bytes:
    """The program that the kernel runs at every system call.

    mark: what the kernel calls this processor; number_of_socket: of the call `socket`;
    first_of_keys: the first of the three calls for keyrings.
    """
    load, equal, at_least, end = 0x20, 0x15, 0x35, 0x06
    allow, refuse = 0x7FFF0000, 0x00050000
    lines: list[tuple[int, str, str, int]] = [
        (load, "", "", 4),
        (equal, "", "no call", mark),  # another instruction set has other numbers for calls
        (load, "", "", 0),
        (at_least, "no call", "", 0x40000000),  # x32
        (equal, "no call", "", IO_URING_SETUP),
        *((equal, "no call", "", first_of_keys + i) for i in range(3)),
        (equal, "", "allowed", number_of_socket),
        (load, "", "", 16),
        *((equal, "allowed", "", family) for family in FAMILIES),
    ]
    ends = {"no family": refuse | EAFNOSUPPORT, "no call": refuse | ENOSYS, "allowed": allow}
    places = {name: len(lines) + i for i, name in enumerate(ends)}

    def ahead(line: int, name: str) -> int:
        return places[name] - line - 1 if name else 0

    program = [(o, ahead(i, yes), ahead(i, no), k) for i, (o, yes, no, k) in enumerate(lines)]
    program += [(end, 0, 0, value) for value in ends.values()]
    return b"".join(struct.pack("=HBBI", *line) for line in program)


FILTER = filter_of(*MACHINES[MACHINE]) if MACHINE in MACHINES else b""
# made at import: the first use of ctypes' machinery would cost every fork time
BUFFER = ctypes.create_string_buffer(FILTER, len(FILTER))
PROGRAM = struct.pack("HxxxxxxP", len(FILTER) // 8, ctypes.addressof(BUFFER))


def scoped() -> None:
    """Asks whether Landlock keeps signals inside.

    Raises:
        OSError: it does not, or there is no Landlock.
    """
    abi = checked(libc.syscall(CREATE_RULESET, None, 0, 1))
    if abi < 6:
        raise OSError("Landlock ABI %d here, 6 needed (Linux 6.12)" % abi)


def landlock(writable: list[str], readable: list[str] | None = None) -> None:
    """Restricts this process and all that it starts, for good.

    writable: the files and folders that may be changed; what lies below a folder, too.
    readable: those that may be read besides; None: every file may be read.

    From ABI 6 on (Linux 6.12), signals and abstract sockets reach no process outside, either.

    Raises:
        OSError: the kernel has no Landlock.
    """
    abi = checked(libc.syscall(CREATE_RULESET, None, 0, 1))
    write = WRITE | (REFER if abi >= 2 else 0) | (TRUNCATE if abi >= 3 else 0)
    rights = write | (READ if readable is not None else 0)
    scopes = SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNAL
    fields = (rights, 0, scopes) if abi >= 6 else (rights,)
    size = 8 * len(fields)
    attribute = struct.pack("%dQ" % len(fields), *fields)
    ruleset = checked(libc.syscall(CREATE_RULESET, attribute, size, 0))
    try:
        for path in writable:
            allow(ruleset, path, rights)
        for path in readable or ():
            allow(ruleset, path, READ)
        checked(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        checked(libc.syscall(RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)


def allow(ruleset: int, path: str, rights: int) -> None:
    """Adds a path and all below it to a ruleset; nothing if the path does not exist."""
    try:
        descriptor = os.open(path, os.O_PATH)
    except FileNotFoundError:
        return
    try:
        if not os.path.isdir(path):
            rights &= OF_FILES
        rule = struct.pack("=Qi", rights, descriptor)
        checked(libc.syscall(ADD_RULE, ruleset, 1, rule, 0))
    finally:
        os.close(descriptor)
