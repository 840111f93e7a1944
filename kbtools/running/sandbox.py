"""Takes from the process that calls it what a snippet has no business with. Standard library only.

docs/sandbox.md says what is shut out, by what, and what is not. What the kernel refuses is left as
it was, and `trial` says so; what it allowed then is demanded of every snippet.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import sys
from types import SimpleNamespace

import view
from view import CLONE_NEWNS, MS_BIND, MS_NOSUID, MS_NOSUID_NODEV, checked, libc, mount

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
# linux/prctl.h, linux/capability.h, linux/keyctl.h
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
CAPABILITY_VERSION_3, KEYCTL_JOIN_SESSION_KEYRING = 0x20080522, 1
# linux/audit.h, asm/unistd.h: the machine's mark, and the numbers of `socket` and `keyctl`
MACHINE = os.uname().machine
MACHINES = {"x86_64": (0xC000003E, 41, 250), "aarch64": (0xC00000B7, 198, 219)}
IO_URING_SETUP, EAFNOSUPPORT, ENOSYS = 425, 97, 38
FAMILIES = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6, AF_NETLINK. Others, vsock above all, know no network namespace."""


def enter(request: dict, shared: SimpleNamespace) -> None:
    """Shuts this single-threaded process in, as far as `trial` found that the kernel lets it.

    Raises:
        OSError: it does not let it any more.
    """
    allowed, scratch, path = shared.allowed, request["scratch"], request["path"]
    own, readable = [scratch, "/proc/self"], None
    if allowed["sight"] is True:
        isolate(shared.view, request["network"])
        view.own_folders(shared.view, scratch, path, request["shared_tmp"])
        mount("pts", "/dev/pts", "devpts", MS_NOSUID, "newinstance,ptmxmode=0666,mode=620")
        own += ["/tmp", "/dev"]
    else:
        own += [request["shared_tmp"], *shared.devices]
        if allowed["network"] is True and isolate(None, request["network"]):
            mount(scratch + "/tmp", request["shared_tmp"], None, MS_BIND)
        readable = [path, "/proc", *shared.readable]
    if allowed["sight"] is True or allowed["network"] is True:
        mount("shm", "/dev/shm", "tmpfs", MS_NOSUID_NODEV)  # what is left there goes with it
    if sys.platform == "linux":
        give_up_powers()
    if allowed["files"] is True:
        landlock(own, readable)
    if allowed["network"] is True:
        refuse_calls()


def trial(shared: SimpleNamespace) -> dict:
    """What of the sandbox this kernel allows, or why not: tried on this process, which is spent.

    `network`, `files` (changing them), `sight` (of what is others'), `signals`.
    """
    found: dict = {"sight": shared.view is not None or shared.why}

    def network() -> None:
        isolate(shared.view, False)
        give_up_powers()
        refuse_calls()

    for name, attempt in (
        ("signals", scoped),
        ("network", network),
        ("files", lambda: landlock(["/proc/self"])),
    ):
        try:
            attempt()
            found[name] = True
        except (OSError, AttributeError) as error:  # macOS has no such functions
            found[name] = str(error)
    return {name: found[name] for name in ("network", "sight", "files", "signals")}


def isolate(prepared: SimpleNamespace | None, network: bool) -> None:
    """Mounts, System V shared memory and a network of its own, the network only a loopback."""
    spaces = CLONE_NEWNS | CLONE_NEWIPC | (0 if network else CLONE_NEWNET)
    if prepared:
        view.join(prepared)
        checked(libc.unshare(spaces))
    else:
        view.new_user(spaces)
        mount("none", "/", None, view.MS_REC | view.MS_PRIVATE)
    if not network:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as loopback:
            request = struct.pack("16sh14x", b"lo", 0)
            answer = fcntl.ioctl(loopback, SIOCGIFFLAGS, request)
            flags = struct.unpack("16sh14x", answer)[1]
            fcntl.ioctl(loopback, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


def give_up_powers() -> None:
    """No capability, none to be had from any program, and a keyring of its own."""
    checked(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    header = ctypes.create_string_buffer(struct.pack("=Ii", CAPABILITY_VERSION_3, 0), 8)
    checked(libc.capset(header, ctypes.create_string_buffer(24)))
    _, _, keyctl = MACHINES.get(MACHINE, (0, 0, 0))
    if keyctl:  # a kernel without keyrings has nothing to hide
        libc.syscall(keyctl, KEYCTL_JOIN_SESSION_KEYRING, None, 0, 0, 0)


def refuse_calls() -> None:
    """Refuses sockets of families that namespaces do not shut in, and io_uring, a way around."""
    if not FILTER:
        raise OSError("no filter for the processor %s" % MACHINE)
    block = ctypes.create_string_buffer(FILTER, len(FILTER))
    whole = struct.pack("HxxxxxxP", len(FILTER) // 8, ctypes.addressof(block))
    checked(libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, whole, 0, 0))


def filter_of(mark: int, number_of_socket: int) -> bytes:
    """The program that the kernel runs at every system call."""
    load, equal, at_least, end = 0x20, 0x15, 0x35, 0x06
    allow, refuse = 0x7FFF0000, 0x00050000
    count = len(FAMILIES)
    program = [
        (load, 0, 0, 4),
        (equal, 0, count + 6, mark),  # another instruction set numbers its calls otherwise
        (load, 0, 0, 0),
        (at_least, count + 4, 0, 0x40000000),  # x32
        (equal, count + 3, 0, IO_URING_SETUP),
        (equal, 0, count + 3, number_of_socket),
        (load, 0, 0, 16),
        *((equal, count + 1 - i, 0, family) for i, family in enumerate(FAMILIES)),
        (end, 0, 0, refuse | EAFNOSUPPORT),
        (end, 0, 0, refuse | ENOSYS),
        (end, 0, 0, allow),
    ]
    return b"".join(struct.pack("=HBBI", *line) for line in program)


FILTER = filter_of(*MACHINES[MACHINE][:2]) if MACHINE in MACHINES else b""


def scoped() -> None:
    """Whether Landlock keeps signals inside."""
    abi = checked(libc.syscall(CREATE_RULESET, None, 0, 1))
    if abi < 6:
        raise OSError("Landlock ABI %d here, 6 needed (Linux 6.12)" % abi)


def landlock(writable: list, readable: list | None = None) -> None:
    """Refuses every change of a file that is not one of these or below one.

    And, where `readable` is given, every look into one that is in neither list. From ABI 6 on
    (Linux 6.12), also signals and abstract sockets to a process that is not below this one.
    """
    abi = checked(libc.syscall(CREATE_RULESET, None, 0, 1))
    write = WRITE | (REFER if abi >= 2 else 0) | (TRUNCATE if abi >= 3 else 0)
    rights = write | (READ if readable is not None else 0)
    scopes = SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNAL
    fields = (rights, 0, scopes) if abi >= 6 else (rights,)
    size = 8 * len(fields)
    attribute = ctypes.create_string_buffer(struct.pack("%dQ" % len(fields), *fields), size)
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
    """Adds a path, if there is such a one, and all below it to a ruleset."""
    try:
        descriptor = os.open(path, os.O_PATH)
    except FileNotFoundError:
        return
    try:
        if not os.path.isdir(path):
            rights &= OF_FILES
        rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, descriptor), 12)
        checked(libc.syscall(ADD_RULE, ruleset, 1, rule, 0))
    finally:
        os.close(descriptor)
