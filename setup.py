"""The compiled kernels: one source, built twice, for any processor and for AVX2. Both are optional.

Where no compiler is at hand the package installs without them and works through the NumPy twins.
``CANDIDE_BOUNDSCHECK=1`` builds them with every index checked.
"""

import os
import platform
import sys

from setuptools import Extension, setup

FOLDER = "src/candide/kernels"
CODE_PARTS = ("_objects", "_grid", "_levels", "_cells", "_decision_tables", "_together", "_discriminants")
SPARSE_PARTS = ("_sparse", "_words")
PARTS = ("_lanes", "_tables", "_counting", "_powers", "_rows", "_student", *CODE_PARTS, *SPARSE_PARTS, "_normalising")
TEXT_PARTS = ("_text_table", "_text_sink", "_text_reading", "_text_counting", "_text_scoring")
LOOPS = [f"{FOLDER}/{name}.pxi" for name in PARTS + TEXT_PARTS]
CHECKED = os.environ.get("CANDIDE_BOUNDSCHECK", "0") not in ("", "0")
MSVC = sys.platform == "win32"
CORES = os.cpu_count() or 1
# No -ffast-math: NaN means "absent" and must survive.
FAST = "-O1" if CHECKED else "-O3"  # a checked build is for finding errors, not for speed
COMMON = ["/O2"] if MSVC else [FAST, "-fno-math-errno", "-fno-trapping-math"]
AVX2 = ["/arch:AVX2"] if MSVC else ["-mavx2", "-mfma"]


def extension(name: str, flags: list[str]) -> Extension:
    return Extension(
        f"candide.kernels.{name}",
        [f"{FOLDER}/{name}.pyx"],
        depends=LOOPS,
        extra_compile_args=flags,
    )


def extensions() -> list[Extension]:
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    modules = [extension("_baseline", COMMON), extension("_text", COMMON)]
    if platform.machine().lower() in ("x86_64", "amd64"):
        modules.append(extension("_avx2", COMMON + AVX2))
    directives = {
        "language_level": 3,
        "boundscheck": CHECKED,
        "initializedcheck": CHECKED,
        "wraparound": False,
        "cdivision": True,
        "embedsignature": True,
    }
    built = cythonize(modules, compiler_directives=directives, force=True, nthreads=0 if MSVC else CORES)
    for module in built:
        module.optional = True  # cythonize makes new extensions and forgets it
    return built


setup(ext_modules=extensions(), options={"build_ext": {"parallel": CORES}})
