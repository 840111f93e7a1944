"""Takes from the process that calls it what a snippet has no business with. Standard library only.

No network but its own loopback (user and network namespaces), writes only below its scratch
folder and in /dev and /proc (Landlock). Both work without privileges on current Linux; what the
kernel refuses is left as it was, and `trial` says so.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct

# linux/sched.h, linux/mount.h
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x10000000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE, MS_NOSUID_NODEV = 4096, 16384, 1 << 18, 2 | 4
# linux/sockios.h, linux/if.h
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
# linux/landlock.h: the rights to change files; those above bit 12 came with ABI 2 and 3
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
WRITE = (1 << 1) | sum(1 << bit for bit in range(4, 13))
REFER, TRUNCATE = 1 << 13, 1 << 14
SCOPE_SIGNAL = 1 << 1
PR_SET_NO_NEW_PRIVS = 38

libc = ctypes.CDLL(None, use_errno=True)


def enter(scratch: str, *, network: bool, shared_tmp: str = "") -> None:
    """Shuts this single-threaded process in, as far as the kernel lets it.

    `shared_tmp` is the temporary folder that the zygote's modules have noted; where mounts are
    allowed, the snippet's own stands in its place.
    """
    private = os.path.join(scratch, "tmp")
    isolated = _quietly(lambda: namespaces(network))
    if isolated and shared_tmp:
        isolated = _quietly(lambda: bind(private, shared_tmp))
    if isolated:  # what is left in shared memory is gone with the snippet
        _quietly(lambda: _checked(libc.mount(b"shm", b"/dev/shm", b"tmpfs", MS_NOSUID_NODEV, None)))
    keep = [scratch, "/dev", "/proc"]
    if shared_tmp:
        keep.append(shared_tmp)
    _quietly(lambda: landlock(keep))


def trial() -> dict:
    """What of the sandbox this kernel allows: `{"network": true, "files": true}`, or why not."""
    found: dict = {}
    for name, attempt in (
        ("network", lambda: namespaces(False)),
        ("files", lambda: landlock(["/dev"])),
    ):
        try:
            attempt()
            found[name] = True
        except OSError as error:
            found[name] = str(error)
    return found


def _quietly(attempt: object) -> bool:
    try:
        attempt()
    except OSError:
        return False
    return True


def namespaces(network: bool) -> None:
    """User and mount namespaces of its own, and a network with nothing but the loopback."""
    uid, gid = os.getuid(), os.getgid()
    _checked(libc.unshare(CLONE_NEWUSER | CLONE_NEWNS | (0 if network else CLONE_NEWNET)))
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", "%d %d 1" % (uid, uid)),
        ("gid_map", "%d %d 1" % (gid, gid)),
    ):
        with open("/proc/self/" + name, "w") as file:
            file.write(text)
    _checked(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None))
    if not network:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as loopback:
            request = struct.pack("16sh14x", b"lo", 0)
            answer = fcntl.ioctl(loopback, SIOCGIFFLAGS, request)
            flags = struct.unpack("16sh14x", answer)[1]
            fcntl.ioctl(loopback, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


def bind(source: str, target: str) -> None:
    """Puts one folder in the place of another, for this process and its children."""
    _checked(libc.mount(os.fsencode(source), os.fsencode(target), None, MS_BIND | MS_REC, None))


def landlock(writable: list) -> None:
    """Refuses every change of a file that is not below one of these folders.

    From ABI 6 on (Linux 6.12), also every signal to a process that is not below this one.
    """
    abi = libc.syscall(CREATE_RULESET, None, 0, 1)
    _checked(abi)
    rights = WRITE | (REFER if abi >= 2 else 0) | (TRUNCATE if abi >= 3 else 0)
    fields = (rights, 0, SCOPE_SIGNAL) if abi >= 6 else (rights,)
    size = 8 * len(fields)
    attribute = ctypes.create_string_buffer(struct.pack("%dQ" % len(fields), *fields), size)
    ruleset = _checked(libc.syscall(CREATE_RULESET, attribute, size, 0))
    try:
        for folder in writable:
            descriptor = os.open(folder, os.O_PATH)
            rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, descriptor), 12)
            _checked(libc.syscall(ADD_RULE, ruleset, 1, rule, 0))
            os.close(descriptor)
        _checked(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        _checked(libc.syscall(RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
