"""Write wheels laid out as those of nvidia-cutlass-dsl 4.3.5 and 4.4.2."""

import zipfile

PAYLOAD = {
    "nvidia_cutlass_dsl.pth": "nvidia_cutlass_dsl/python_packages",
    "nvidia_cutlass_dsl/python_packages/cutlass/__init__.py": "",
}


def wheel(name, version, files, more=""):
    """Write one wheel."""
    info = f"{name}-{version}.dist-info"
    files = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{more}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(f"{name}-{version}-py3-none-any.whl", "w") as file:
        for path, text in {**files, f"{info}/RECORD": record}.items():
            file.writestr(path, text)


wheel("nvidia_cutlass_dsl", "4.3.5", PAYLOAD)
wheel("nvidia_cutlass_dsl", "4.4.2", {}, "Requires-Dist: nvidia-cutlass-dsl-libs-base==4.4.2\n")
wheel("nvidia_cutlass_dsl_libs_base", "4.4.2", PAYLOAD)
