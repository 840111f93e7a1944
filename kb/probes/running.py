"""What a program meets at run time: shared memory, caches, locks, ports, variables."""

from __future__ import annotations

import posixpath
import re
from typing import Iterator, List, Tuple

from kb_probes.facts import torch, visible

from kbtools.doctor.hardware import gpus
from kbtools.doctor.machine import Machine, Unanswered
from kbtools.doctor.probe import RISK, Finding, probe
from kbtools.doctor.ranges import within

NETWORK = ("nfs", "nfs4", "lustre", "cifs", "smb3", "gpfs", "beegfs", "ceph", "fuse.sshfs", "9p")
"""Kinds of file systems that other machines write to as well."""
GIB = 1 << 30
SEVERAL = ("several processes", "多个进程")


def mounted(machine: Machine, folder: str) -> Tuple[str, List[str]]:
    """The kind of the file system of a folder, and its options; empty if unknown."""
    best, kind, options = "", "", ""
    for line in (machine.read("/proc/mounts") or "").splitlines():
        words = line.split(" ")
        if len(words) < 4:
            continue
        point = words[1].replace("\\040", " ")
        inside = folder == point or folder.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind, options = point, words[2], words[3]
    return kind, options.split(",")


def nearest(machine: Machine, folder: str) -> str:
    """The folder, or the first one above it that exists."""
    while not machine.exists(folder) and folder not in ("", "/"):
        folder = posixpath.dirname(folder)
    return folder or "/"


def triton_cache(machine: Machine) -> str:
    """The folder in which Triton keeps compiled kernels."""
    home = machine.environment.get("TRITON_HOME") or machine.home()
    return machine.environment.get("TRITON_CACHE_DIR") or posixpath.join(home, ".triton/cache")


def inductor_cache(machine: Machine) -> str:
    """The folder in which Inductor keeps what it makes."""
    user = re.sub(r"[\\/:*?\"<>|]", "_", machine.environment.get("USER") or "root")
    temporary = machine.environment.get("TMPDIR") or "/tmp"
    return machine.environment.get("TORCHINDUCTOR_CACHE_DIR") or f"{temporary}/torchinductor_{user}"


@probe(
    "small-shared-memory",
    "KB0074",
    "/dev/shm is smaller than a few batches of a DataLoader.",
    "/dev/shm 小到放不下 DataLoader 的几个 batch。",
    level=RISK,
    when=("a DataLoader with workers, NCCL", "带 worker 的 DataLoader、NCCL"),
)
def small_shared_memory(machine: Machine) -> Iterator[Finding]:
    """A container has 64 MB by default."""
    space = machine.space("/dev/shm")
    if torch(machine) and space and space[0] < GIB // 2:
        yield Finding(
            "/dev/shm",
            f"{space[0] / 1e6:.0f} MB",
            ("some GB", "若干 GB"),
            "docker run --shm-size=8g …   # or --ipc=host\nmount -o remount,size=8g /dev/shm",
        )


@probe(
    "full-shared-memory",
    "KB0074",
    "/dev/shm is nearly full.",
    "/dev/shm 几乎已满。",
    level=RISK,
    when=("a DataLoader with workers, NCCL", "带 worker 的 DataLoader、NCCL"),
)
def full_shared_memory(machine: Machine) -> Iterator[Finding]:
    """Processes that were killed leave their files there."""
    space = machine.space("/dev/shm")
    if torch(machine) and space and space[0] >= GIB // 2 and space[1] < space[0] // 20:
        yield Finding(
            "/dev/shm", f"{space[1] / 1e6:.0f} MB", "5 %", "ls -lS /dev/shm | head; df -h /dev/shm"
        )


@probe(
    "few-open-files",
    "KB0074",
    "A process may open so few files that a DataLoader runs out of them.",
    "进程可打开的文件数太少，DataLoader 会用尽。",
    level=RISK,
    when=("a DataLoader with workers", "带 worker 的 DataLoader"),
)
def few_open_files(machine: Machine) -> Iterator[Finding]:
    """Each tensor that is shared by a file descriptor holds one; 1024 is a common default."""
    limit = machine.limit("NOFILE")
    if torch(machine) and limit is not None and 0 <= limit < 1024:
        yield Finding("ulimit -n", str(limit), "1024", "ulimit -n 65535")


@probe(
    "little-locked-memory",
    "KB0134",
    "A process may lock so little memory that NCCL cannot register buffers with InfiniBand.",
    "进程可锁定的内存太少，NCCL 无法向 InfiniBand 注册缓冲区。",
    level=RISK,
    when=("NCCL over InfiniBand or RoCE", "NCCL 走 InfiniBand 或 RoCE"),
)
def little_locked_memory(machine: Machine) -> Iterator[Finding]:
    """It was 8192 kB where a registration failed: NVIDIA/nccl-tests#206."""
    limit = machine.limit("MEMLOCK")
    adapters = machine.names("/sys/class/infiniband")
    if adapters and torch(machine) and limit is not None and 0 <= limit < GIB:
        yield Finding(
            "ulimit -l",
            f"{limit // 1024} kB; {', '.join(adapters[:3])}",
            "unlimited",
            "ulimit -l unlimited   # in a container: docker run --ulimit memlock=-1",
        )


@probe(
    "triton-cache-on-a-network",
    "KB0087",
    "Triton's cache lies on a file system that other machines share.",
    "Triton 的缓存位于多台机器共享的文件系统上。",
    level=RISK,
    when=SEVERAL,
)
def triton_cache_on_a_network(machine: Machine) -> Iterator[Finding]:
    """Another node sees a rename late."""
    folder = triton_cache(machine)
    kind = mounted(machine, machine.real(nearest(machine, folder)))[0]
    if kind in NETWORK and machine.distribution("triton"):
        yield Finding(
            folder,
            kind,
            ("a local disk", "本地磁盘"),
            f"export TRITON_CACHE_DIR=/tmp/triton-{machine.uid()}",
        )


@probe(
    "triton-cache-unwritable",
    "KB0087",
    "Triton cannot write to its cache.",
    "Triton 无法写入自己的缓存。",
    when=("Triton, torch.compile", "Triton、torch.compile"),
)
def triton_cache_unwritable(machine: Machine) -> Iterator[Finding]:
    """The folder belongs to somebody else, or the home is read-only."""
    folder = nearest(machine, triton_cache(machine))
    if machine.distribution("triton") and not machine.is_writable(folder):
        yield Finding(
            folder,
            ("not writable", "不可写"),
            triton_cache(machine),
            f"export TRITON_CACHE_DIR=/tmp/triton-{machine.uid()}",
        )


@probe(
    "inductor-cache-unwritable",
    "KB0090",
    "Inductor's cache belongs to somebody else, or is no folder.",
    "Inductor 的缓存属于别人，或不是文件夹。",
    when="torch.compile",
)
def inductor_cache_unwritable(machine: Machine) -> Iterator[Finding]:
    """Two containers with one /tmp, both as `root`, or a file in its place."""
    folder = inductor_cache(machine)
    if not torch(machine) or not machine.exists(folder):
        return
    if not machine.is_folder(folder) or not machine.is_writable(folder):
        yield Finding(
            folder,
            ("not writable", "不可写"),
            ("a folder of yours", "属于自己的文件夹"),
            f"export TORCHINDUCTOR_CACHE_DIR=/tmp/inductor-{machine.uid()}",
        )


@probe(
    "inductor-cache-damaged",
    "KB0090",
    "Inductor's cache has an empty file, which is taken as it is.",
    "Inductor 的缓存里有空文件，它会被原样使用。",
    when="torch.compile",
)
def inductor_cache_damaged(machine: Machine) -> Iterator[Finding]:
    """A disk that was full, or a machine that was switched off. At most 2,000 files are seen."""
    folder, count = inductor_cache(machine), 0
    for name in machine.names(folder):
        if len(name) != 2:
            continue
        for file in machine.names(f"{folder}/{name}"):
            count += 1
            path = f"{folder}/{name}/{file}"
            if count < 2000 and file.endswith((".so", ".py")) and not machine.size(path):
                yield Finding(path, "0 B", ("no empty file", "没有空文件"), f"rm -rf {folder}")
                return


@probe(
    "stale-extension-lock",
    "KB0062",
    "A build of an extension left its lock, and the next one will wait for ever.",
    "某次扩展构建留下了锁，下一次构建会永远等待。",
    when=("torch.utils.cpp_extension.load",) * 2,
)
def stale_extension_lock(machine: Machine) -> Iterator[Finding]:
    """From torch 2.14 on a lock ends with its process. One of ten minutes may be a build."""
    build = torch(machine)
    if not build or within(build.version, "<2.14") is not True:
        return
    cache = machine.environment.get("XDG_CACHE_HOME") or posixpath.join(machine.home(), ".cache")
    top = machine.environment.get("TORCH_EXTENSIONS_DIR") or f"{cache}/torch_extensions"
    folders = [f"{top}/{name}" for name in machine.names(top)]
    folders += [f"{folder}/{name}" for folder in folders for name in machine.names(folder)]
    for folder in folders:
        lock = f"{folder}/lock"
        if machine.is_file(lock) and machine.age(lock) > 600:
            yield Finding(
                lock, f"{machine.age(lock) / 60:.0f} min", ("no lock", "没有锁"), f"rm {lock}"
            )


@probe(
    "full-temporary-folder",
    "KB0090",
    "There is almost no room in the folder for temporary files.",
    "临时文件夹几乎没有空间。",
    level=RISK,
    when=("torch.compile, builds", "torch.compile、构建"),
)
def full_temporary_folder(machine: Machine) -> Iterator[Finding]:
    """Compilers and Inductor write there; half-written files stay in caches."""
    folder = machine.environment.get("TMPDIR") or "/tmp"
    space = machine.space(folder)
    if torch(machine) and space and space[1] < 200 * 10**6:
        yield Finding(folder, f"{space[1] / 1e6:.0f} MB", "200 MB", f"df -h {folder}")


@probe(
    "store-port-in-use",
    "KB0037",
    "A program listens on the port that the processes of a job would meet at.",
    "作业各进程要用来会合的端口已被某个程序占用。",
    level=RISK,
    when=("torchrun, init_process_group",) * 2,
)
def store_port_in_use(machine: Machine) -> Iterator[Finding]:
    """MASTER_PORT, if it is set here and this is the machine that it is on."""
    port = machine.environment.get("MASTER_PORT", "")
    if not port.isdigit() or machine.environment.get("RANK", "0") != "0":
        return
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in (machine.read(table) or "").splitlines()[1:]:
            words = line.split()
            if len(words) > 3 and words[3] == "0A" and words[1].endswith(f":{int(port):04X}"):
                yield Finding(
                    f"MASTER_PORT={port}",
                    "LISTEN",
                    ("a free port", "空闲端口"),
                    f"ss -ltnp 'sport = :{port}'\ntorchrun --standalone …",
                )
                return


@probe(
    "more-ranks-than-gpus",
    "KB0035",
    "More processes than GPUs are to run on this machine: two would share one.",
    "要在这台机器上运行的进程多于 GPU：会有两个进程共用一个。",
    level=RISK,
    when="NCCL",
)
def more_ranks_than_gpus(machine: Machine) -> Iterator[Finding]:
    """By the variables that torchrun, Slurm and Open MPI set."""
    names = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "SLURM_NTASKS_PER_NODE")
    count = len(gpus(machine))
    value = visible(machine)
    count = min(count, len([v for v in value.split(",") if v])) if value else count
    for name in names:
        ranks = machine.environment.get(name, "")
        if count and ranks.isdigit() and int(ranks) > count and value != "":
            yield Finding(f"{name}={ranks}", f"{count} GPU", f"{ranks} GPU", "nvidia-smi -L")
            return


@probe(
    "launches-are-blocking",
    "KB0039",
    "CUDA_LAUNCH_BLOCKING is left on: every launch waits for the GPU.",
    "CUDA_LAUNCH_BLOCKING 一直开着：每次启动 kernel 都要等待 GPU。",
    level=RISK,
    when=("speed", "速度"),
)
def launches_are_blocking(machine: Machine) -> Iterator[Finding]:
    """It is for finding the call that fails, not for good."""
    if machine.environment.get("CUDA_LAUNCH_BLOCKING") == "1":
        yield Finding("CUDA_LAUNCH_BLOCKING=1", "1", "0", "unset CUDA_LAUNCH_BLOCKING")


@probe(
    "fork-asked-for",
    "KB0047",
    "vLLM is told to fork its workers, which cannot use CUDA if the program has used it before.",
    "vLLM 被指定用 fork 启动 worker；如果程序此前已使用过 CUDA，worker 将无法使用。",
    level=RISK,
    when=("CUDA before the engine is created", "创建引擎之前使用 CUDA"),
)
def fork_asked_for(machine: Machine) -> Iterator[Finding]:
    """The variable is vLLM's."""
    name = "VLLM_WORKER_MULTIPROC_METHOD"
    if machine.distribution("vllm") and machine.environment.get(name) == "fork":
        yield Finding(f"{name}=fork", "fork", "spawn", f"export {name}=spawn")


@probe(
    "proxy-for-this-machine",
    "KB0182",
    "Requests to this machine's own servers go to the proxy.",
    "发给本机服务器的请求会走代理。",
    level=RISK,
    when=("a server of models on this machine", "在本机上运行模型服务器"),
)
def proxy_for_this_machine(machine: Machine) -> Iterator[Finding]:
    """The proxy's address is not shown: it may hold a password."""
    variables = {name.lower(): value for name, value in machine.environment.items() if value}
    proxies = [name for name in ("http_proxy", "all_proxy") if name in variables]
    named = [name.strip().lower() for name in variables.get("no_proxy", "").split(",")]
    missing = [host for host in ("localhost", "127.0.0.1") if host not in named]
    serves = any(machine.distribution(name) for name in ("sglang", "vllm", "fastapi", "openai"))
    if serves and proxies and missing and "*" not in named:
        yield Finding(
            "no_proxy",
            f"{proxies[0]} without no_proxy={','.join(missing)}",
            "no_proxy=localhost,127.0.0.1",
            "export no_proxy=localhost,127.0.0.1,0.0.0.0,$no_proxy\nexport NO_PROXY=$no_proxy",
        )


COPY = """
import torch
count = torch.cuda.device_count()
print("gpus", count)
for a in range(min(count, 8)):
    for b in range(min(count, 8)):
        if a != b:
            x = torch.arange(1 << 20, device=f"cuda:{a}")
            y = x.to(f"cuda:{b}")
            z = x.to("cpu")
            torch.cuda.synchronize(b)
            if not torch.equal(y.to("cpu"), z):
                print("differs", a, b)
"""


@probe(
    "peer-copies-do-not-arrive",
    "KB0195",
    "A copy from one GPU to another does not arrive.",
    "从一个 GPU 到另一个 GPU 的拷贝没有正确到达。",
    active=True,
)
def peer_copies(machine: Machine) -> Iterator[Finding]:
    """A copy and a compare between each pair of GPUs, in a process of its own."""
    build = torch(machine)
    if not build or not build.cuda or len(gpus(machine)) < 2:
        return
    result = machine.python(COPY, 90.0)
    if result is None:
        raise Unanswered("no answer in 90 s")
    if "gpus" not in result.output:
        raise Unanswered(
            result.output.strip().splitlines()[-1][:200] if result.output else "no output"
        )
    pairs = re.findall(r"^differs (\d+) (\d+)", result.output, re.MULTILINE)
    if pairs:
        text = ", ".join(f"{a} → {b}" for a, b in pairs)
        yield Finding(
            "cuda",
            text,
            ("equal data", "数据一致"),
            "nvidia-smi topo -p2p rw\nexport NCCL_P2P_DISABLE=1",
        )
