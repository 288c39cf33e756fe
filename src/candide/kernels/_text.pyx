"""The compiled text kernels: terms of documents, counted or scored without the GIL; `_text_twin` is their readable twin.

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


cdef class Words:
    """A set of keys, fixed once made: the position of a key is where it stands in ``letters``."""

    cdef Store store
    cdef readonly object letters, starts

    def __cinit__(self):
        memset(&self.store, 0, sizeof(Store))

    def __init__(self, letters, starts):
        self.letters, self.starts = np.ascontiguousarray(letters, np.uint8), np.ascontiguousarray(starts, np.int64)
        # the hash reads whole words of bytes, so there must be some behind the last key
        cdef const uint8_t[::1] bytes_ = np.concatenate([self.letters, np.zeros(SLACK, np.uint8)])
        cdef const int64_t[::1] at = self.starts
        cdef int64_t n = at.shape[0] - 1
        cdef int64_t[::1] places = np.empty(n + 1, np.int64)
        cdef bint failed = False
        with nogil:
            failed = store_open(&self.store, room_for(n)) < 0
            failed = failed or look_up(&self.store, &bytes_[0], &at[0], n, True, &places[0]) < 0
        if failed or self.store.n != n:
            raise MemoryError("no room for the vocabulary, or a word stands in it twice")

    def __dealloc__(self):
        store_close(&self.store)

    def __reduce__(self):
        return Words, (self.letters, self.starts)

    def __len__(self):
        return self.store.n

    def positions(self, letters, starts):
        """Where other keys stand in this set; -1 where they do not."""
        cdef const uint8_t[::1] bytes_ = np.concatenate([letters, np.zeros(SLACK, np.uint8)])
        cdef const int64_t[::1] at = np.ascontiguousarray(starts, np.int64)
        cdef int64_t n = at.shape[0] - 1
        out = np.empty(n + 1, np.int64)
        cdef int64_t[::1] o = out
        with nogil:
            look_up(&self.store, &bytes_[0], &at[0], n, False, &o[0])
        return out[:n]


cdef class Terms:
    """How documents are divided into terms, with the tables that takes."""

    cdef Form form
    cdef const uint8_t[::1] fold
    cdef const uint32_t[::1] info
    cdef Words stop

    def __init__(self, fold, info, *, characters, ngrams, shortest, longest, Words stop, bits, signs):
        self.fold, self.info, self.stop = fold, info, stop
        self.form.fold, self.form.info = &self.fold[0], &self.info[0]
        self.form.characters, (self.form.low, self.form.high) = characters, ngrams
        self.form.shortest, self.form.longest = shortest, longest
        self.form.stop = NULL if stop is None else &stop.store
        self.form.bits, self.form.signs = bits, signs

    def count(self, const uint64_t[::1] address, const int64_t[::1] size, const uint8_t[::1] kind,
              const int64_t[::1] order, const int64_t[::1] y, const double[::1] weight, *, int n_classes, int manner,
              bint signed):
        """Count the documents in ``order``, class after class: the keys, and the cells of each class.

        The result is (letters, starts, where each class's cells start, key, total, documents, length).
        """
        cdef Sink k
        cdef Buffer b
        cdef Store store
        cdef Py_ssize_t at, row, n = order.shape[0]
        cdef int64_t c = 0
        cdef int failed = 0
        cells = [], [], []
        sizes = np.zeros(n_classes + 1, np.int64)
        length = np.zeros(n_classes)
        memset(&k, 0, sizeof(Sink))
        k.mode, k.manner, k.signed, k.store = COUNTING, manner, signed, &store
        if buffer_open(&b, self.form.high) < 0 or store_open(&store, 1024) < 0:
            raise MemoryError("no room to count terms")
        try:
            at = 0
            while at < n and not failed:
                c = y[order[at]]
                k.n_touched, k.length = 0, 0.0
                with nogil:
                    while at < n and y[order[at]] == c:
                        row = order[at]
                        at += 1
                        k.weight = weight[row]
                        if kind[row] == ABSENT or k.weight == 0.0:
                            continue
                        k.document = <int32_t> at
                        failed = document(<const uint8_t*> <size_t> address[row], size[row], kind[row], &self.form,
                                          &b, &k)
                        if failed:
                            break
                if failed:
                    raise MemoryError("no room for the vocabulary; hash the terms, or leave rare ones out")
                length[c] += k.length
                sizes[c + 1] = k.n_touched
                for column, part in zip(cells, flushed(&k), strict=True):
                    column.append(part)
            letters, starts = keys_of(&store)
        finally:
            buffer_close(&b)
            store_close(&store)
            free(k.touched)
            give_back()
        columns = [joined(cells[0], np.int32), joined(cells[1], np.float64), joined(cells[2], np.float64)]
        return letters, starts, np.cumsum(sizes), *columns, length

    def score(self, Words words, const uint64_t[::1] address, const int64_t[::1] size, const uint8_t[::1] kind,
              const int64_t[::1] cells, const int32_t[::1] column, const double[::1] delta, unit, base,
              double[:, ::1] out, double[:, ::1] sums, *, int manner):
        """Add the weights of the terms of every document to its row of ``out``, and to ``sums`` what is common."""
        cdef Sink k
        cdef Buffer b
        cdef Py_ssize_t row
        cdef const double[::1] unit_ = unit, base_ = base
        cdef int failed = 0
        memset(&k, 0, sizeof(Sink))
        k.mode, k.manner, k.store, k.cells = SCORING, manner, &words.store, &cells[0]
        k.n_classes = <int> out.shape[1]
        if delta.shape[0]:
            k.column, k.delta = &column[0], &delta[0]
        if unit_ is not None and unit_.shape[0]:
            k.unit = &unit_[0]
        if base_ is not None and base_.shape[0]:
            k.base = &base_[0]
        if buffer_open(&b, self.form.high) < 0:
            raise MemoryError("no room to read a document")
        try:
            if manner != PLAIN:
                marks_open(&k, words.store.n)
            with nogil:
                for row in range(address.shape[0]):
                    if kind[row] == ABSENT:
                        continue
                    k.document, k.out, k.units, k.bases = <int32_t> row + 1, &out[row, 0], 0.0, 0.0
                    failed = document(<const uint8_t*> <size_t> address[row], size[row], kind[row], &self.form, &b, &k)
                    if failed:
                        break
                    sums[row, 0] = k.units
                    sums[row, 1] = k.bases
        finally:
            buffer_close(&b)
            free(k.last)
            free(k.times)
        if failed:
            raise MemoryError("no room to read a document")

    def rows(self, Words words, const uint64_t[::1] address, const int64_t[::1] size, const uint8_t[::1] kind):
        """Sparse rows (counts, positions, where rows start) of the known terms of every document."""
        cdef Sink k
        cdef Buffer b
        cdef Py_ssize_t row, n = address.shape[0]
        cdef uint64_t i, before
        cdef int failed = 0
        memset(&k, 0, sizeof(Sink))
        k.mode, k.manner, k.store = LISTING, PLAIN, &words.store
        indptr = np.zeros(n + 1, np.int64)
        cdef int64_t[::1] ends = indptr
        cdef uint32_t* times = NULL
        cdef uint64_t room = 0
        if buffer_open(&b, self.form.high) < 0:
            raise MemoryError("no room to read a document")
        try:
            marks_open(&k, words.store.n)
            with nogil:
                for row in range(n):
                    before = k.n_touched
                    if kind[row] != ABSENT:
                        k.document = <int32_t> row + 1
                        failed = document(<const uint8_t*> <size_t> address[row], size[row], kind[row], &self.form, &b,
                                          &k)
                    if not failed and k.room > room:
                        room = k.room
                        times = <uint32_t*> realloc(times, room * sizeof(uint32_t))
                        failed = times == NULL
                    if failed:
                        break
                    for i in range(before, k.n_touched):
                        times[i] = k.times[k.touched[i]]
                    ends[row + 1] = <int64_t> k.n_touched
            if failed:
                raise MemoryError("no room for the terms of these documents")
            data, indices = np.empty(k.n_touched), np.empty(k.n_touched, np.int32)
            copy_listed(data, indices, times, k.touched)
        finally:
            buffer_close(&b)
            free(times)
            free(k.touched)
            free(k.last)
            free(k.times)
        return data, indices, indptr


def joined(parts, dtype):
    """Arrays one after another; each is given up as soon as it is copied."""
    out = np.empty(sum(map(len, parts)), dtype)
    end = len(out)
    while parts:
        part = parts.pop()
        out[end - len(part) : end] = part
        end -= len(part)
    return out


cdef void copy_listed(double[::1] data, int32_t[::1] indices, const uint32_t* times, const uint32_t* touched):
    cdef Py_ssize_t i
    for i in range(data.shape[0]):
        data[i] = times[i]
        indices[i] = <int32_t> touched[i]


cdef int marks_open(Sink* k, uint32_t n) except -1:
    k.last = <int32_t*> calloc(n + 1, sizeof(int32_t))
    k.times = <uint32_t*> calloc(n + 1, sizeof(uint32_t))
    if k.last == NULL or k.times == NULL:
        raise MemoryError("no room to mark the terms of a document")
    return 0


cdef int buffer_open(Buffer* b, int high) noexcept nogil:
    b.room = 0
    b.bytes = NULL
    b.starts = <int64_t*> calloc(high, sizeof(int64_t))
    return -1 if b.starts == NULL else make_room(b, 0)


cdef void buffer_close(Buffer* b) noexcept nogil:
    free(b.bytes)
    free(b.starts)


cdef object flushed(Sink* k):
    """The cells of the class that ends: (key, total, documents); their entries begin again at zero."""
    cdef Py_ssize_t i, n = <Py_ssize_t> k.n_touched
    key, total, documents = np.empty(n, np.uint32), np.empty(n), np.empty(n)
    cdef uint32_t[::1] w = key
    cdef double[::1] t = total, d = documents
    cdef Entry* e
    with nogil:
        for i in range(n):
            if i + 16 < n:
                prefetch(&k.store.entries[k.touched[i + 16]])
            e = &k.store.entries[k.touched[i]]
            w[i] = k.touched[i]
            t[i] = e.total
            d[i] = e.documents
            e.total = 0.0
            e.documents = 0.0
    return key, total, documents


cdef object keys_of(const Store* s):
    """All keys, one after another, and where each starts."""
    cdef Py_ssize_t i, n = s.n
    starts = np.zeros(n + 1, np.int64)
    cdef int64_t[::1] a = starts
    for i in range(n):
        a[i + 1] = a[i] + s.entries[i].size
    letters = np.empty(a[n], np.uint8)
    cdef uint8_t[::1] out = letters
    cdef const Entry* e
    for i in range(n):
        e = &s.entries[i]
        if e.size:
            memcpy(&out[a[i]], bytes_of(s, e), e.size)
    return letters, starts


def unite(letters, starts, more_letters, more_starts):
    """Where the keys of a second set go: at their place in the first, or behind it. (places, which are new)"""
    cdef Words words = Words(letters, starts)
    cdef const uint8_t[::1] bytes_ = np.concatenate([more_letters, np.zeros(SLACK, np.uint8)])
    cdef const int64_t[::1] at = np.ascontiguousarray(more_starts, np.int64)
    cdef int64_t n = at.shape[0] - 1
    places = np.empty(n + 1, np.int64)
    cdef int64_t[::1] p = places
    cdef int64_t before = words.store.n
    cdef bint failed = False
    with nogil:
        failed = look_up(&words.store, &bytes_[0], &at[0], n, True, &p[0]) < 0
    if failed:
        raise MemoryError("no room for the words of both")
    return places[:n], np.flatnonzero(places[:n] >= before)


def sum_cells(a, b, const int64_t[::1] places, int64_t n_terms):
    """The cells of two tallies, each (classes, word, total, documents), where the second's terms have new places."""
    cdef const int64_t[::1] ends
    cdef const int32_t[::1] word
    cdef const double[::1] total, documents
    cdef int64_t n = 0, at, c, i, j, before
    cdef int64_t n_classes = len(a[0]) - 1
    classes = np.zeros(n_classes + 1, np.int64)
    room = len(a[1]) + len(b[1])
    words, totals, have = np.empty(room, np.int32), np.empty(room), np.empty(room)
    cdef int64_t[::1] e = classes
    cdef int32_t[::1] w = words
    cdef double[::1] t = totals, d = have
    cdef int64_t[::1] place = np.full(max(1, n_terms), -1, np.int64)  # of a term's cell in this class
    for c in range(n_classes):
        before = n
        for side, (ends, word, total, documents) in enumerate((a, b)):
            at = side
            with nogil:
                for i in range(ends[c], ends[c + 1]):
                    j = places[word[i]] if at else word[i]
                    if place[j] < before:
                        place[j] = n
                        w[n], t[n], d[n] = <int32_t> j, total[i], documents[i]
                        n += 1
                    else:
                        t[place[j]] += total[i]
                        d[place[j]] += documents[i]
        e[c + 1] = n
    return classes, words[:n], totals[:n], have[:n]
