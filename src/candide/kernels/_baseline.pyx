"""The compiled kernels for any processor; `_numpy` is their readable twin."""

include "_lanes.pxi"
include "_tables.pxi"
include "_counting.pxi"
include "_powers.pxi"
include "_rows.pxi"
include "_student.pxi"
include "_objects.pxi"
include "_grid.pxi"
include "_levels.pxi"
include "_cells.pxi"
include "_decision_tables.pxi"
include "_together.pxi"
include "_discriminants.pxi"
include "_sparse.pxi"
include "_words.pxi"
include "_normalising.pxi"

cdef extern from *:
    """
    #if (defined(__GNUC__) || defined(__clang__)) && defined(__x86_64__)
    static int candide_has_avx2(void) {
        __builtin_cpu_init();
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    }
    #elif defined(_MSC_VER) && defined(_M_X64)
    #include <windows.h>
    static int candide_has_avx2(void) { return IsProcessorFeaturePresent(40); } /* PF_AVX2_INSTRUCTIONS_AVAILABLE */
    #else
    static int candide_has_avx2(void) { return 0; }
    #endif
    """
    bint candide_has_avx2()


def cpu_has_avx2():
    """Whether this processor runs the AVX2 build."""
    return candide_has_avx2()
