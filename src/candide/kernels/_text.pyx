"""The compiled text kernels: terms of documents, counted or scored without the GIL; `_text_twin` is their readable twin.

A document is a view: an address, a length and how its characters are stored. Its terms are written, lower-cased and
as UTF-8, into a small buffer, so that an n-gram is a slice of that buffer; a term is then a key in an open-addressing
hash table. Keys of up to 24 bytes lie in their table entry, one cache line each; longer ones in an arena.
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
    """
    void prefetch "candide_prefetch"(const void* p) nogil

if sys.byteorder != "little":
    raise ImportError("the text kernels read words of bytes in little-endian order")

cdef enum:
    INLINE = 24  # bytes of a key kept in its entry
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
    SPACE = 1 << 25  # whether it is white space,
    SPECIAL = 1 << 26  # whether its lower case depends on its neighbours, or is more than one character
    PLAIN = 0  # what an occurrence counts: one,
    BINARY = 1  # one for the first only,
    SUBLINEAR = 2  # or what it adds to 1 + log(occurrences)
    COUNTING = 0
    SCORING = 1
    LISTING = 2


# The table ------------------------------------------------------------------------------------------------------------

cdef struct Entry:
    uint64_t key[3]  # the first bytes; of a long key the first 8, and its place in the arena
    uint64_t hash
    double total
    double documents
    uint32_t size
    int32_t last  # the document that had it last
    uint32_t times  # in that document
    uint32_t spare

cdef struct Store:
    uint64_t* slots  # high half: of the hash; low half: 1 + position of the entry
    uint64_t mask
    Entry* entries
    uint32_t n
    uint32_t room
    uint8_t* arena
    uint64_t used
    uint64_t arena_room


cdef int store_open(Store* s, uint64_t n_slots) noexcept nogil:
    memset(s, 0, sizeof(Store))
    s.mask = n_slots - 1
    s.slots = <uint64_t*> calloc(n_slots, sizeof(uint64_t))
    s.room = <uint32_t> (n_slots // 2)
    s.entries = <Entry*> malloc(s.room * sizeof(Entry))
    return 0 if s.slots != NULL and s.entries != NULL else -1


cdef void store_close(Store* s) noexcept nogil:
    free(s.slots)
    free(s.entries)
    free(s.arena)
    memset(s, 0, sizeof(Store))


cdef int store_grow(Store* s) noexcept nogil:
    """Twice the slots and the entries: at most half of the slots are ever taken."""
    cdef uint64_t n_slots = (s.mask + 1) * 2, at
    cdef uint32_t i
    cdef Entry* entries = <Entry*> realloc(s.entries, <size_t> (n_slots // 2) * sizeof(Entry))
    if entries == NULL:
        return -1
    s.entries = entries
    s.room = <uint32_t> (n_slots // 2)
    free(s.slots)
    s.slots = <uint64_t*> calloc(n_slots, sizeof(uint64_t))
    if s.slots == NULL:
        return -1
    s.mask = n_slots - 1
    for i in range(s.n):
        at = s.entries[i].hash & s.mask
        while s.slots[at] != 0:
            at = (at + 1) & s.mask
        s.slots[at] = s.entries[i].hash >> 32 << 32 | (i + 1)
    return 0


cdef inline uint64_t word_at(const uint8_t* p) noexcept nogil:
    cdef uint64_t x
    memcpy(&x, p, 8)
    return x


cdef inline uint64_t few_at(const uint8_t* p, Py_ssize_t n) noexcept nogil:
    """The first 0 < n <= 8 bytes, zeros behind them; up to 8 are read."""
    return word_at(p) & (~<uint64_t> 0 >> (64 - 8 * n))


cdef inline uint64_t mix(uint64_t h, uint64_t x) noexcept nogil:
    h = (h ^ x) * <uint64_t> 0x9E3779B97F4A7C15
    return h ^ (h >> 32)


cdef inline uint64_t hash_of(const uint8_t* p, Py_ssize_t n) noexcept nogil:
    cdef uint64_t h = <uint64_t> n * <uint64_t> 0xD6E8FEB86659FD93
    while n > 8:
        h = mix(h, word_at(p))
        p += 8
        n -= 8
    h = mix(h, few_at(p, n)) if n > 0 else h
    return mix(h, h >> 29)


cdef inline bint same_key(const Store* s, const Entry* e, const uint8_t* p, Py_ssize_t n) noexcept nogil:
    if e.size != n:
        return False
    if n <= 8:
        return n == 0 or e.key[0] == few_at(p, n)
    if e.key[0] != word_at(p):
        return False
    if n <= 16:
        return e.key[1] == few_at(p + 8, n - 8)
    if n <= INLINE:
        return e.key[1] == word_at(p + 8) and e.key[2] == few_at(p + 16, n - 16)
    return memcmp(s.arena + e.key[1], p, n) == 0


cdef inline int64_t find(const Store* s, const uint8_t* p, Py_ssize_t n, uint64_t h) noexcept nogil:
    """The position of a key with this hash, or -1. Up to SLACK bytes behind it are read."""
    cdef uint64_t at = h & s.mask, slot
    while True:
        slot = s.slots[at]
        if slot == 0:
            return -1
        if (slot ^ h) >> 32 == 0 and same_key(s, &s.entries[<uint32_t> slot - 1], p, n):
            return <int64_t> <uint32_t> slot - 1
        at = (at + 1) & s.mask


cdef inline int64_t find_or_add(Store* s, const uint8_t* p, Py_ssize_t n, uint64_t h) noexcept nogil:
    """The position of a key with this hash, new or known; -1 where memory ends."""
    cdef uint64_t at = h & s.mask, slot
    while True:
        slot = s.slots[at]
        if slot == 0:
            return add_key(s, p, n, h, at)
        if (slot ^ h) >> 32 == 0 and same_key(s, &s.entries[<uint32_t> slot - 1], p, n):
            return <int64_t> <uint32_t> slot - 1
        at = (at + 1) & s.mask


cdef int64_t add_key(Store* s, const uint8_t* p, Py_ssize_t n, uint64_t h, uint64_t at) noexcept nogil:
    cdef uint8_t* arena
    cdef uint64_t room
    cdef Entry* e
    if s.n >= s.room:
        if s.n >= 0x7FFFFFF0 or store_grow(s) < 0:
            return -1
        at = h & s.mask
        while s.slots[at] != 0:
            at = (at + 1) & s.mask
    e = &s.entries[s.n]
    memset(e, 0, sizeof(Entry))
    e.hash = h
    e.size = <uint32_t> n
    if n <= INLINE:
        memcpy(e.key, p, n)
    else:
        if s.used + n > s.arena_room:
            room = (s.used + n) * 2 + 4096
            arena = <uint8_t*> realloc(s.arena, room)
            if arena == NULL:
                return -1
            s.arena = arena
            s.arena_room = room
        memcpy(e.key, p, 8)
        e.key[1] = s.used
        memcpy(s.arena + s.used, p, n)
        s.used += n
    s.slots[at] = h >> 32 << 32 | (s.n + 1)
    s.n += 1
    return <int64_t> s.n - 1


cdef inline void meet_soon(const Store* s, uint64_t h) noexcept nogil:
    """Have the entry that a hash most likely means brought near, if its slot is known to be taken."""
    cdef uint64_t slot = s.slots[h & s.mask]
    if slot != 0:
        prefetch(&s.entries[<uint32_t> slot - 1])


cdef int look_up(Store* s, const uint8_t* bytes_, const int64_t* at, int64_t n, bint add, int64_t* out) noexcept nogil:
    """The positions of keys that lie one after another, a lot of them at a time: memory is far, and they are many."""
    cdef uint64_t h[LOT]
    cdef int64_t start = 0, i, m
    while start < n:
        m = min(<int64_t> LOT, n - start)
        for i in range(m):
            h[i] = hash_of(bytes_ + at[start + i], at[start + i + 1] - at[start + i])
            prefetch(&s.slots[h[i] & s.mask])
        for i in range(m):
            meet_soon(s, h[i])
        for i in range(start, start + m):
            if add:
                out[i] = find_or_add(s, bytes_ + at[i], at[i + 1] - at[i], h[i - start])
                if out[i] < 0:
                    return -1
            else:
                out[i] = find(s, bytes_ + at[i], at[i + 1] - at[i], h[i - start])
        start += m
    return 0


cdef uint64_t room_for(int64_t n) noexcept nogil:
    cdef uint64_t slots = 1024
    while slots < <uint64_t> n * 2 + 2:
        slots *= 2
    return slots


# Terms ----------------------------------------------------------------------------------------------------------------

cdef struct Form:  # how a document is divided into terms
    const uint8_t* fold  # of a byte: its lower case if it is a word character, 0 if not, 1 if it is no ASCII
    const uint32_t* info  # of every character
    bint characters  # terms are runs of characters, not of words
    int low  # shortest and longest n-gram
    int high
    int64_t shortest  # characters of a token
    int64_t longest
    const Store* stop
    int bits  # terms are hashed into 2**bits buckets; 0: they are not
    bint signs  # the sign of the hash is part of the key

cdef struct Term:  # one occurrence, not yet looked up
    int64_t first  # where it starts in the buffer; -1: it is hashed, and its key is here
    int64_t size
    uint64_t hash
    uint64_t key
    double sign
    int64_t place

cdef struct Sink:  # what becomes of a term
    Term waiting[LOT]
    int n_waiting
    int n_classes
    int mode
    int manner  # PLAIN, BINARY or SUBLINEAR
    int failed
    Store* store
    int32_t document
    double weight
    bint signed
    double length  # COUNTING: of the class so far
    uint32_t* touched  # entries met in this class, or in this document
    uint64_t n_touched
    uint64_t room
    int32_t* last  # SCORING, LISTING: as in Entry, but of this thread
    uint32_t* times
    const int64_t* cells  # SCORING: where a term's weights lie
    const int32_t* column
    const double* delta
    const double* unit
    const double* base
    double* out
    double units
    double bases

cdef struct Buffer:
    uint8_t* bytes
    int64_t room
    int64_t* starts  # ring of the starts of the last units


cdef inline uint32_t rotate(uint32_t x, int by) noexcept nogil:
    return (x << by) | (x >> (32 - by))


cdef uint32_t murmur(const uint8_t* p, Py_ssize_t n) noexcept nogil:
    """MurmurHash3 of 32 bits (Appleby), seed 0: what scikit-learn's HashingVectorizer uses."""
    cdef uint32_t h = 0, k
    cdef Py_ssize_t i
    for i in range(n // 4):
        memcpy(&k, p + 4 * i, 4)
        h = rotate(h ^ rotate(k * <uint32_t> 0xCC9E2D51, 15) * <uint32_t> 0x1B873593, 13) * 5 + <uint32_t> 0xE6546B64
    k = 0
    for i in range(n & 3):
        k |= <uint32_t> p[(n & ~3) + i] << (8 * i)
    h ^= rotate(k * <uint32_t> 0xCC9E2D51, 15) * <uint32_t> 0x1B873593
    h ^= <uint32_t> n
    h = (h ^ (h >> 16)) * <uint32_t> 0x85EBCA6B
    h = (h ^ (h >> 13)) * <uint32_t> 0xC2B2AE35
    return h ^ (h >> 16)


cdef inline double share(int manner, uint32_t times) noexcept nogil:
    """What the ``times``-th occurrence of a term in a document counts."""
    if manner == PLAIN or times == 1:
        return 1.0
    return 0.0 if manner == BINARY else log(times / (times - 1.0))


cdef inline int touch(Sink* k, uint32_t i) noexcept nogil:
    cdef uint32_t* more
    if k.n_touched == k.room:
        more = <uint32_t*> realloc(k.touched, (k.room * 2 + 1024) * sizeof(uint32_t))
        if more == NULL:
            k.failed = 1
            return -1
        k.touched = more
        k.room = k.room * 2 + 1024
    k.touched[k.n_touched] = i
    k.n_touched += 1
    return 0


cdef inline void take(Sink* k, const Form* f, const Buffer* b, int64_t first, int64_t n) noexcept nogil:
    """One occurrence of a term: it waits until there is a lot of them."""
    cdef Term* t = &k.waiting[k.n_waiting]
    cdef uint32_t h
    t.first, t.size, t.sign = first, n, 1.0
    if f.bits:
        h = murmur(b.bytes + first, n)
        if h >> 31:
            t.sign = -1.0
            h = <uint32_t> 0 - h
        t.key = h & ((<uint32_t> 1 << f.bits) - 1)
        t.first, t.size = -1, 4
        if f.signs:
            t.size = 5
            t.key |= <uint64_t> (t.sign < 0) << 32
        t.hash = hash_of(<const uint8_t*> &t.key, t.size)
    else:
        t.hash = hash_of(b.bytes + first, n)
    prefetch(&k.store.slots[t.hash & k.store.mask])
    k.n_waiting += 1
    if k.n_waiting == LOT:
        settle(k, b)


cdef void settle(Sink* k, const Buffer* b) noexcept nogil:
    """Count, score or list the terms that wait."""
    cdef int i
    cdef int n = k.n_waiting
    k.n_waiting = 0
    for i in range(n):
        meet_soon(k.store, k.waiting[i].hash)
    if k.mode == COUNTING:
        for i in range(n):
            count_one(k, &k.waiting[i], b)
        return
    for i in range(n):
        k.waiting[i].place = find(k.store, key_of(&k.waiting[i], b), k.waiting[i].size, k.waiting[i].hash)
        if k.mode == SCORING and k.waiting[i].place >= 0:
            prefetch(&k.cells[k.waiting[i].place])
    if k.mode == LISTING:
        for i in range(n):
            if k.waiting[i].place >= 0:
                mark(k, k.waiting[i].place)
        return
    for i in range(n):
        if k.waiting[i].place >= 0:
            prefetch(&k.delta[k.cells[k.waiting[i].place]])
            prefetch(&k.column[k.cells[k.waiting[i].place]])
    for i in range(n):
        if k.waiting[i].place >= 0:
            score_one(k, k.waiting[i].place)


cdef inline const uint8_t* key_of(const Term* t, const Buffer* b) noexcept nogil:
    return <const uint8_t*> &t.key if t.first < 0 else b.bytes + t.first


cdef inline void count_one(Sink* k, const Term* t, const Buffer* b) noexcept nogil:
    cdef int64_t i = find_or_add(k.store, key_of(t, b), t.size, t.hash)
    cdef Entry* e
    cdef double x
    if i < 0:
        k.failed = 1
        return
    e = &k.store.entries[i]
    if e.last != k.document:
        if e.documents == 0 and touch(k, <uint32_t> i) < 0:
            return
        e.last = k.document
        e.times = 0
        e.documents += k.weight
    e.times += 1
    x = k.weight * share(k.manner, e.times)
    k.length += x
    e.total += t.sign * x if k.signed else x


cdef inline double mark(Sink* k, int64_t i) noexcept nogil:
    """What this occurrence of a known term counts, which may depend on how often it came before."""
    if k.last == NULL:
        return 1.0
    if k.last[i] != k.document:
        k.last[i] = k.document
        k.times[i] = 0
        if k.mode == LISTING and touch(k, <uint32_t> i) < 0:
            return 0.0
    k.times[i] += 1
    return share(k.manner, k.times[i])


cdef inline void score_one(Sink* k, int64_t i) noexcept nogil:
    cdef double x = mark(k, i)
    cdef int64_t j, first = k.cells[i], n = k.cells[i + 1] - first
    cdef const double* delta = k.delta + first
    cdef const int32_t* column = k.column + first
    if x == 0.0:
        return
    k.units += x if k.unit == NULL else x * k.unit[i]
    if k.base != NULL:
        k.bases += x * k.base[i]
    if n == k.n_classes:  # met in every class: its cells lie in their order
        for j in range(n):
            k.out[j] += x * delta[j]
    else:
        for j in range(n):
            k.out[column[j]] += x * delta[j]


cdef inline int64_t encode(uint32_t c, uint8_t* out) noexcept nogil:
    """A character as UTF-8; a lone surrogate as if it were one."""
    if c < 0x80:
        out[0] = <uint8_t> c
        return 1
    if c < 0x800:
        out[0] = <uint8_t> (0xC0 | c >> 6)
        out[1] = <uint8_t> (0x80 | c & 0x3F)
        return 2
    if c < 0x10000:
        out[0] = <uint8_t> (0xE0 | c >> 12)
        out[1] = <uint8_t> (0x80 | c >> 6 & 0x3F)
        out[2] = <uint8_t> (0x80 | c & 0x3F)
        return 3
    out[0] = <uint8_t> (0xF0 | c >> 18)
    out[1] = <uint8_t> (0x80 | c >> 12 & 0x3F)
    out[2] = <uint8_t> (0x80 | c >> 6 & 0x3F)
    out[3] = <uint8_t> (0x80 | c & 0x3F)
    return 4


cdef inline uint32_t character(const uint8_t* p, int64_t* at, int kind) noexcept nogil:
    """The next character of a sound document; ``at`` counts its units of storage."""
    cdef int64_t i = at[0]
    cdef uint32_t b
    at[0] = i + 1
    if kind == UTF8:
        b = p[i]
        if b < 0x80:
            return b
        if b < 0xE0:
            at[0] = i + 2
            return (b & 0x1F) << 6 | (p[i + 1] & 0x3F)
        if b < 0xF0:
            at[0] = i + 3
            return (b & 0x0F) << 12 | <uint32_t> (p[i + 1] & 0x3F) << 6 | (p[i + 2] & 0x3F)
        at[0] = i + 4
        return ((b & 0x07) << 18 | <uint32_t> (p[i + 1] & 0x3F) << 12 | <uint32_t> (p[i + 2] & 0x3F) << 6
                | (p[i + 3] & 0x3F))
    if kind == LATIN:
        return p[i]
    if kind == UCS2:
        return (<const uint16_t*> p)[i]
    return (<const uint32_t*> p)[i]


cdef inline int make_room(Buffer* b, int64_t used) noexcept nogil:
    cdef uint8_t* more
    if used + 4 * SPAN + SLACK <= b.room:
        return 0
    more = <uint8_t*> realloc(b.bytes, 2 * used + 8 * SPAN + SLACK)
    if more == NULL:
        return -1
    memset(more + b.room, 0, 2 * used + 8 * SPAN + SLACK - b.room)
    b.bytes = more
    b.room = 2 * used + 8 * SPAN + SLACK
    return 0


cdef inline int64_t unit_ends(Buffer* b, Sink* k, const Form* f, int64_t start, int64_t end, int64_t* units,
                              bint gap) noexcept nogil:
    """Take every n-gram that ends with the unit [start, end); where the next unit starts."""
    cdef int64_t n, first, from_, i
    b.starts[units[0] % f.high] = start
    units[0] += 1
    for n in range(f.low, f.high + 1):
        if n > units[0]:
            break
        first = b.starts[(units[0] - n) % f.high]
        take(k, f, b, first, end - first)
    if f.high == 1:
        if end > SHORT:
            settle(k, b)
            return 0
        return end
    if gap:
        b.bytes[end] = 32
        end += 1
    if end > LONG:  # keep only what a later n-gram may begin with
        n = min(<int64_t> f.high - 1, units[0])
        from_ = b.starts[(units[0] - n) % f.high]
        if from_ > end // 2:
            settle(k, b)
            memmove(b.bytes, b.bytes + from_, end - from_)
            for i in range(n):
                b.starts[(units[0] - 1 - i) % f.high] -= from_
            end -= from_
    return end


cdef int words_of(const uint8_t* p, int64_t n, int kind, const Form* f, Buffer* b, Sink* k) noexcept nogil:
    """The n-grams of the words of one document."""
    cdef int64_t i = 0, pos = 0, start = 0, letters = 0, units = 0, stop
    cdef uint8_t t
    cdef uint32_t c
    cdef bint narrow = kind == LATIN or kind == UTF8, in_word
    while i < n and not k.failed:
        if make_room(b, pos) < 0:
            return -1
        stop = min(n, i + SPAN)
        while i < stop:
            in_word = False
            if narrow:
                t = f.fold[p[i]]
                if t > 1:  # an ASCII word character, and most likely more of them
                    while t > 1:
                        b.bytes[pos] = t
                        pos += 1
                        letters += 1
                        i += 1
                        if i == stop:
                            break
                        t = f.fold[p[i]]
                    continue
                if t == 0:
                    i += 1
                else:
                    c = f.info[character(p, &i, kind)]
                    in_word = (c & WORD) != 0
            else:
                c = f.info[character(p, &i, kind)]
                in_word = (c & WORD) != 0
            if in_word:
                pos += encode(c & CODE, b.bytes + pos)
                letters += 1
            elif letters:
                pos = word_ends(b, k, f, start, pos, letters, &units)
                start = pos
                letters = 0
    if letters and not k.failed:
        word_ends(b, k, f, start, pos, letters, &units)
    return -1 if k.failed else 0


cdef inline int64_t word_ends(Buffer* b, Sink* k, const Form* f, int64_t start, int64_t end, int64_t letters,
                              int64_t* units) noexcept nogil:
    if letters < f.shortest or letters > f.longest:
        return start
    if f.stop != NULL and find(f.stop, b.bytes + start, end - start, hash_of(b.bytes + start, end - start)) >= 0:
        return start
    return unit_ends(b, k, f, start, end, units, True)


cdef int characters_of(const uint8_t* p, int64_t n, int kind, const Form* f, Buffer* b, Sink* k) noexcept nogil:
    """The n-grams of the characters of one document, where two or more white spaces are one blank."""
    cdef int64_t i = 0, pos = 0, end, units = 0, stop, blanks = 0
    cdef uint32_t c, blank = 0
    while i < n and not k.failed:
        stop = min(n, i + SPAN // 2)
        while i < stop:
            if make_room(b, pos) < 0:
                return -1
            c = f.info[character(p, &i, kind)]
            if c & SPACE:
                blank = c & CODE if blanks == 0 else 32
                blanks += 1
                continue
            if blanks:
                end = pos + encode(blank, b.bytes + pos)
                pos = unit_ends(b, k, f, pos, end, &units, False)
                blanks = 0
            end = pos + encode(c & CODE, b.bytes + pos)
            pos = unit_ends(b, k, f, pos, end, &units, False)
    if blanks and not k.failed:
        if make_room(b, pos) < 0:
            return -1
        end = pos + encode(blank, b.bytes + pos)
        unit_ends(b, k, f, pos, end, &units, False)
    return -1 if k.failed else 0


cdef inline int document(const uint8_t* p, int64_t n, int kind, const Form* f, Buffer* b, Sink* k) noexcept nogil:
    cdef int failed = characters_of(p, n, kind, f, b, k) if f.characters else words_of(p, n, kind, f, b, k)
    settle(k, b)
    return -1 if failed or k.failed else 0


# Soundness ------------------------------------------------------------------------------------------------------------

cdef bint sound(const uint8_t* p, int64_t n, int kind, const uint32_t* info) noexcept nogil:
    """Whether a document can be read as it is: valid UTF-8, and no character that needs its neighbours."""
    cdef int64_t i = 0, at, j
    cdef uint64_t high = 0
    cdef uint32_t c, b
    if kind == ABSENT:
        return True
    if kind == LATIN or kind == UTF8:
        while i + 32 <= n:
            high = word_at(p + i) | word_at(p + i + 8) | word_at(p + i + 16) | word_at(p + i + 24)
            if high & <uint64_t> 0x8080808080808080:
                break
            i += 32
        while i < n and p[i] < 0x80:
            i += 1
        if kind == LATIN:
            while i < n:
                if info[p[i]] & SPECIAL:
                    return False
                i += 1
            return True
    while i < n:
        if kind == UTF8:
            b = p[i]
            if b < 0x80:
                i += 1
                continue
            if b < 0xC2 or b > 0xF4 or i + (2 if b < 0xE0 else 3 if b < 0xF0 else 4) > n:
                return False
            at = i
            c = character(p, &at, kind)
            for j in range(i + 1, at):
                if p[j] & 0xC0 != 0x80:
                    return False
            if c < (0x80 if at - i == 2 else 0x800 if at - i == 3 else 0x10000) or c > 0x10FFFF:
                return False
            if 0xD800 <= c < 0xE000:
                return False
            i = at
        else:
            c = character(p, &i, kind)
        if info[c] & SPECIAL:
            return False
    return True


# What Python calls ----------------------------------------------------------------------------------------------------

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
        cells = [[] for _ in range(n_classes)]
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
                cells[c].append(flushed(&k))
            letters, starts = keys_of(&store)
        finally:
            buffer_close(&b)
            store_close(&store)
            free(k.touched)
        sizes = [sum(len(part[0]) for part in parts) for parts in cells]
        columns = [np.concatenate([part[j] for parts in cells for part in parts] or [np.empty(0)]) for j in range(3)]
        indptr = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        return letters, starts, indptr, columns[0].astype(np.int32), columns[1], columns[2], length

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
            memcpy(&out[a[i]], <const void*> e.key if e.size <= INLINE else s.arena + e.key[1], e.size)
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
