"""The text kernels, compiled with the address sanitizer and fuzzed: any byte read or written out of place ends it.

python tests/kernels/sanitize.py [SECONDS]

The package is copied to a temporary folder and the kernel is built there, so that nothing installed is changed. Python
takes its memory from malloc, so that every string has borders that are watched.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import candide

ROOT = Path(__file__).resolve().parents[2]
BUILD = """
from Cython.Build import cythonize
from setuptools import Extension, setup
flags = ["-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize=alignment"]
sources = ["src/candide/kernels/_text.pyx"]
module = Extension("candide.kernels._text", sources, extra_compile_args=flags, extra_link_args=flags)
directives = {"language_level": 3, "boundscheck": False, "wraparound": False, "cdivision": True}
modules = cythonize([module], compiler_directives=directives)
setup(name="sanitized", package_dir={"": "src"}, packages=[], ext_modules=modules)
"""


def main(seconds: float) -> int:
    compiler = os.environ.get("CC", "gcc")
    library = subprocess.run([compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        binary = shutil.ignore_patterns("*.so", "*.c", "__pycache__")
        shutil.copytree(ROOT / "src", folder / "src", ignore=binary)
        for other in Path(candide.__file__).parent.glob("kernels/_baseline*.so"):  # those without which none are used
            shutil.copy(other, folder / "src" / "candide" / "kernels")
        (folder / "build.py").write_text(BUILD)
        subprocess.run([sys.executable, "build.py", "-q", "build_ext", "--inplace"], cwd=folder, check=True)
        environment = os.environ | {
            "PYTHONPATH": str(folder / "src"),
            "CANDIDE_KERNELS": "baseline",
            "PYTHONMALLOC": "malloc",
            "LD_PRELOAD": library.stdout.strip(),
            "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
            "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        }
        check = "import candide.kernels._text as t, sys; sys.exit(0 if t.__file__.startswith(sys.argv[1]) else 3)"
        subprocess.run([sys.executable, "-c", check, name], env=environment, check=True)
        fuzz = [sys.executable, str(Path(__file__).with_name("text_fuzz.py")), str(seconds), "1"]
        return subprocess.run(fuzz, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(float((sys.argv[1:] or ["30"])[0])))
