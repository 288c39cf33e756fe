"""The compiled text kernels: terms of documents, counted or scored without the GIL; `text_twin` is their readable twin.

A document is a view: an address, a length and how its characters are stored. Its terms are written, lower-cased and
as UTF-8, into a small buffer, so that an n-gram is a slice of that buffer; a term is then a key in an open-addressing
hash table. Keys of up to 16 bytes lie in their table entry, longer ones in an arena.
"""

import sys

import numpy as np

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.math cimport log
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memmove, memset

cdef extern from "Python.h":
    int PyUnicode_KIND(object)
    void* PyUnicode_DATA(object)
    Py_ssize_t PyUnicode_GET_LENGTH(object)

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define candide_prefetch(p) __builtin_prefetch(p)
    #else
    #define candide_prefetch(p) ((void)(p))
    #endif
    #if defined(__GLIBC__)
    #include <malloc.h>
    #define candide_give_back() ((void)malloc_trim(0))
    #else
    #define candide_give_back() ((void)0)
    #endif
    """
    void prefetch "candide_prefetch"(const void* p) nogil
    void give_back "candide_give_back"() nogil  # freed memory to the system: glibc keeps what threads have freed

if sys.byteorder != "little":
    raise ImportError("the text kernels read words of bytes in little-endian order")

cdef enum:
    INLINE = 16  # bytes of a key kept in its entry
    SLACK = 64  # bytes behind a buffer that may be read, never used
    SPAN = 4096  # characters between two looks at the room in the buffer
    LONG = 65536  # bytes of a document kept before the start of the buffer is given up
    SHORT = 4096  # the same, where no term reaches back
    LOT = 32  # terms that are looked up together
    MANY = 100000  # terms whose table is given back to the system when it is closed
    ABSENT = 0  # how the characters of a document are stored
    LATIN = 1
    UCS2 = 2
    UCS4 = 4
    UTF8 = 8
    CODE = 0x1FFFFF  # of a character's entry: its lower case,
    WORD = 1 << 24  # and whether that is a word character,
    TABLED = 0x40000  # characters above it are none of these
    SPACE = 1 << 25  # whether it is white space,
    SPECIAL = 1 << 26  # whether its lower case depends on its neighbours, or is more than one character
    PLAIN = 0  # what an occurrence counts: one,
    BINARY = 1  # one for the first only,
    SUBLINEAR = 2  # or what it adds to 1 + log(occurrences)
    WORDS = 0  # what a term is a run of
    CHARACTERS = 1
    WITHIN = 2
    COUNTING = 0
    SCORING = 1
    LISTING = 2


include "_text_table.pxi"
include "_text_sink.pxi"
include "_text_reading.pxi"


def gather(list documents, Py_ssize_t start, Py_ssize_t stop):
    """Addresses, lengths and kinds of Python strings and bytes, and the rows that are neither."""
    cdef Py_ssize_t i
    cdef object text
    address, size, kind = np.zeros(stop - start, np.uint64), np.zeros(stop - start, np.int64), np.zeros(
        stop - start, np.uint8)
    cdef uint64_t[::1] a = address
    cdef int64_t[::1] s = size
    cdef uint8_t[::1] k = kind
    odd = []
    for i in range(start, stop):
        text = documents[i]
        if type(text) is str or isinstance(text, str):
            a[i - start] = <uint64_t> <size_t> PyUnicode_DATA(text)
            s[i - start] = PyUnicode_GET_LENGTH(text)
            k[i - start] = PyUnicode_KIND(text)
        elif isinstance(text, bytes):
            a[i - start] = <uint64_t> <size_t> PyBytes_AS_STRING(text)
            s[i - start] = PyBytes_GET_SIZE(text)
            k[i - start] = UTF8
        elif text is not None:
            odd.append(i)
    return address, size, kind, odd


def unsound(const uint64_t[::1] address, const int64_t[::1] size, const uint8_t[::1] kind, const uint32_t[::1] info):
    """The rows that must be repaired before they are read: see ``sound``."""
    cdef Py_ssize_t i, n = address.shape[0]
    bad = np.zeros(n, np.uint8)
    cdef uint8_t[::1] b = bad
    with nogil:
        for i in range(n):
            b[i] = not sound(<const uint8_t*> <size_t> address[i], size[i], kind[i], &info[0])
    return np.flatnonzero(bad)


def bare(const uint8_t[::1] letters, const uint8_t[::1] fold):
    """Look every byte up in a table and do nothing with it: the limit of any loop over bytes."""
    cdef Py_ssize_t i
    cdef int64_t n = 0
    with nogil:
        for i in range(letters.shape[0]):
            n += fold[letters[i]] > 1
    return n


cdef int look_up_all(Store* s, letters, starts, bint add, int64_t[::1] out) except -1:
    """The positions of keys that lie one after another. The hash reads whole words of bytes, so there must be some
    behind each key: the last keys are read from a copy that has them."""
    cdef const uint8_t[::1] bytes_ = letters
    cdef const int64_t[::1] at = np.ascontiguousarray(starts, np.int64)
    cdef int64_t n = at.shape[0] - 1
    cdef int64_t cut = np.searchsorted(at[1:], bytes_.shape[0] - SLACK, "right")
    cdef const uint8_t[::1] tail = np.concatenate([letters[at[cut]:], np.zeros(SLACK, np.uint8)])
    cdef const int64_t[::1] tail_at = np.asarray(at[cut:]) - at[cut]
    cdef int failed = 0
    with nogil:
        if cut > 0:
            failed = look_up(s, &bytes_[0], &at[0], cut, add, &out[0])
        if failed == 0 and cut < n:
            failed = look_up(s, &tail[0], &tail_at[0], n - cut, add, &out[cut])
    if failed:
        raise MemoryError("no room for the vocabulary")
    return 0


cdef class Words:
    """A set of keys, fixed once made: the position of a key is where it stands in ``letters``."""

    cdef Store store
    cdef readonly object letters, starts

    def __cinit__(self):
        memset(&self.store, 0, sizeof(Store))

    def __init__(self, letters, starts):
        self.letters, self.starts = np.ascontiguousarray(letters, np.uint8), np.ascontiguousarray(starts, np.int64)
        cdef int64_t n = len(self.starts) - 1
        if store_open(&self.store, room_for(n)) < 0:
            raise MemoryError("no room for the vocabulary")
        look_up_all(&self.store, self.letters, self.starts, True, np.empty(n + 1, np.int64))
        if self.store.n != n:
            raise ValueError("a word stands in the vocabulary twice")

    def __dealloc__(self):
        cdef bint large = self.store.n > MANY
        store_close(&self.store)
        if large:
            give_back()

    def __reduce__(self):
        return Words, (self.letters, self.starts)

    def __len__(self):
        return self.store.n

    def positions(self, letters, starts):
        """Where other keys stand in this set; -1 where they do not."""
        out = np.empty(len(starts), np.int64)
        look_up_all(&self.store, np.ascontiguousarray(letters, np.uint8), starts, False, out)
        return out[: len(starts) - 1]


cdef class Form:
    """How documents are divided into terms, with the tables that takes."""

    cdef Division form
    cdef const uint8_t[::1] fold
    cdef const uint32_t[::1] info
    cdef Words stop

    def __init__(self, fold, info, *, unit, ngrams, shortest, longest, Words stop, bits, signs):
        self.fold, self.info, self.stop = fold, info, stop
        self.form.fold, self.form.info = &self.fold[0], &self.info[0]
        self.form.unit, (self.form.low, self.form.high) = unit, ngrams
        self.form.shortest, self.form.longest = shortest, longest
        self.form.stop = NULL if stop is None else &stop.store
        self.form.bits, self.form.signs = bits, signs


cdef int buffer_open(Buffer* b, int high) noexcept nogil:
    b.room = 0
    b.bytes = NULL
    b.starts = <int64_t*> calloc(high, sizeof(int64_t))
    return -1 if b.starts == NULL else make_room(b, 0)


cdef void buffer_close(Buffer* b) noexcept nogil:
    free(b.bytes)
    free(b.starts)


include "_text_counting.pxi"
include "_text_scoring.pxi"
