# The hash table of keys. Keys of up to 16 bytes lie in their entry; longer ones in an arena.

cdef struct Entry:
    uint64_t key[2]  # all its bytes, zeros behind them; of a long key the first 8, and its place in the arena
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
    s.room = <uint32_t> (n_slots // 16 * 13)
    s.entries = <Entry*> malloc(s.room * sizeof(Entry))
    return 0 if s.slots != NULL and s.entries != NULL else -1


cdef void store_close(Store* s) noexcept nogil:
    free(s.slots)
    free(s.entries)
    free(s.arena)
    memset(s, 0, sizeof(Store))


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


cdef inline const uint8_t* bytes_of(const Store* s, const Entry* e) noexcept nogil:
    return <const uint8_t*> e.key if e.size <= INLINE else s.arena + e.key[1]


cdef int store_grow(Store* s) noexcept nogil:
    """Twice the slots and the entries: at most thirteen of sixteen slots are ever taken."""
    cdef uint64_t n_slots = (s.mask + 1) * 2, at, h
    cdef uint32_t i
    cdef Entry* entries = <Entry*> realloc(s.entries, <size_t> (n_slots // 16 * 13) * sizeof(Entry))
    if entries == NULL:
        return -1
    s.entries = entries
    s.room = <uint32_t> (n_slots // 16 * 13)
    free(s.slots)
    s.slots = <uint64_t*> calloc(n_slots, sizeof(uint64_t))
    if s.slots == NULL:
        return -1
    s.mask = n_slots - 1
    for i in range(s.n):
        h = hash_of(bytes_of(s, &s.entries[i]), s.entries[i].size)
        at = h & s.mask
        while s.slots[at] != 0:
            at = (at + 1) & s.mask
        s.slots[at] = h >> 32 << 32 | (i + 1)
    return 0


cdef inline bint same_key(const Store* s, const Entry* e, const uint8_t* p, Py_ssize_t n) noexcept nogil:
    if e.size != n:
        return False
    if n <= 8:
        return n == 0 or e.key[0] == few_at(p, n)
    if e.key[0] != word_at(p):
        return False
    if n <= INLINE:
        return e.key[1] == few_at(p + 8, n - 8)
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
    e.size = <uint32_t> n
    if n <= INLINE:
        memcpy(e.key, p, n)
    else:
        if s.used + n > s.arena_room:
            room = (s.used + n) * 2 + 4096
            arena = <uint8_t*> realloc(s.arena, room + SLACK)
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
    while slots // 16 * 13 < <uint64_t> n + 1:
        slots *= 2
    return slots
