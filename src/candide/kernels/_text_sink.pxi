# What becomes of a term: it is counted, scored or listed. Terms wait for each other, so that memory is asked for many at once.

cdef struct Division:  # how a document is divided into terms
    const uint8_t* fold  # of a byte: its lower case if it is a word character, 0 if not, 1 if it is no ASCII
    const uint32_t* info  # of every character
    int unit  # what a term is a run of: WORDS, CHARACTERS, or characters WITHIN a word
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


cdef inline void take(Sink* k, const Division* f, const Buffer* b, int64_t first, int64_t n) noexcept nogil:
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
