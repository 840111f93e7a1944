"""Prints for which GPU architectures the nvcc on the PATH compiles, as it lists them itself."""

import json
import re
import shutil
import subprocess
from pathlib import Path


def output(*words):
    return subprocess.run(["nvcc", *words], capture_output=True, text=True, check=True).stdout


version = re.search(r"release [\d.]+, V([\d.]+)", output("--version"))[1]
facts = {
    "sm": re.findall(r"sm_\w+", output("--list-gpu-code")),
    "compute": re.findall(r"compute_\w+", output("--list-gpu-arch")),
}
standards = re.search(r"--std \{([^}]*)\}", output("--help"))
if standards:
    facts["standards"] = standards[1].split("|")
# what it says when it refuses a newer host compiler
includes = re.search(
    r"INCLUDES=(.*)",
    subprocess.run(
        ["nvcc", "--dryrun", "-c", "-x", "cu", "/dev/null"], capture_output=True, text=True
    ).stderr,
)
folders = re.findall(r'-I([^" ]+)', includes[1]) if includes else []
folders.append(str(Path(shutil.which("nvcc")).resolve().parent.parent / "include"))
for header in (Path(folder) / "crt/host_config.h" for folder in folders):
    if header.is_file():
        text = header.read_text()
        facts["newest-gcc"] = re.findall(r"gcc versions later than (\d+)", text)[:1]
        facts["clang-below"] = re.findall(r"clang version must be less than (\d+)", text)[:1]
        break
print(json.dumps({"about": {"nvcc": f"=={version}"}, "facts": facts}))
