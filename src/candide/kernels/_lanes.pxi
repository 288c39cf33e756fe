# Lanes: a few doubles that one instruction works on. Cython takes them for a double; the C compiler knows better,
# and where it has no such type they are a double.

cdef extern from *:
    """
    #include <string.h>
    #if defined(__GNUC__) || defined(__clang__)
    #define CANDIDE_LANES 4
    typedef double candide_lanes __attribute__((vector_size(32), aligned(8), may_alias));
    typedef long long candide_marks __attribute__((vector_size(32)));
    #define candide_all(s) ((candide_lanes){(s), (s), (s), (s)})
    #define candide_sum(v) (((v)[0] + (v)[1]) + ((v)[2] + (v)[3]))
    #define candide_pick(marks, yes, no) \\
        ((candide_lanes)(((candide_marks)(marks) & (candide_marks)(yes)) | \\
                         (~(candide_marks)(marks) & (candide_marks)(no))))
    #define candide_where(marks, yes) ((candide_lanes)((candide_marks)(marks) & (candide_marks)(yes)))
    #define candide_smaller(a, b) ((a) < (b) ? (a) : (b))
    #define candide_least_of(v) \\
        candide_smaller(candide_smaller((v)[0], (v)[1]), candide_smaller((v)[2], (v)[3]))
    #define candide_two_to(v) ((candide_lanes)(((candide_marks)(v) + 1023) << 52))
    #define candide_prefetch(p) __builtin_prefetch(p)
    #else
    #define CANDIDE_LANES 1
    typedef double candide_lanes;
    #define candide_all(s) (s)
    #define candide_sum(v) (v)
    #define candide_least_of(v) (v)
    #define candide_pick(mark, yes, no) ((mark) ? (yes) : (no))
    #define candide_where(mark, yes) ((mark) ? (yes) : 0.0)
    static double candide_two_to(double v) {
        unsigned long long bits;
        memcpy(&bits, &v, 8);
        bits = (bits + 1023) << 52;
        memcpy(&v, &bits, 8);
        return v;
    }
    #define candide_prefetch(p) ((void)(p))
    #endif
    #define candide_load(p) (*(const candide_lanes *)(p))
    #define candide_store(p, v) (*(candide_lanes *)(p) = (v))
    #define candide_least(a, b) candide_pick((b) < (a), b, a)
    #define candide_if_above(x, t, yes, no) candide_pick((x) > (t), yes, no)
    #define candide_if_present(x, yes) candide_where((x) == (x), yes)
    #define candide_if_some(x, yes) candide_where(((x) < candide_all(0.0)) | ((x) > candide_all(0.0)), yes)
    """
    ctypedef double Lanes "candide_lanes"
    enum:
        LANES "CANDIDE_LANES"
    Lanes _all "candide_all"(double) noexcept nogil
    double _sum "candide_sum"(Lanes) noexcept nogil
    Lanes _least "candide_least"(Lanes, Lanes) noexcept nogil  # of each lane; the first where the other is NaN
    double _least_of "candide_least_of"(Lanes) noexcept nogil
    Lanes _two_to "candide_two_to"(Lanes) noexcept nogil  # 2**n of the integer n in the low bits
    Lanes _load "candide_load"(const double *) noexcept nogil
    void _store "candide_store"(double *, Lanes) noexcept nogil
    Lanes _if_above "candide_if_above"(Lanes x, Lanes threshold, Lanes yes, Lanes no) noexcept nogil
    Lanes _if_present "candide_if_present"(Lanes x, Lanes yes) noexcept nogil  # 0 where x is NaN
    Lanes _if_some "candide_if_some"(Lanes x, Lanes yes) noexcept nogil  # 0 where x is 0 or NaN
    void candide_prefetch(const void *p) noexcept nogil
