# From the bytes of a document to its terms.

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


cdef inline uint32_t about(const uint32_t* info, uint32_t c) noexcept nogil:
    return info[c] if c < TABLED else c


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


cdef inline int64_t unit_ends(Buffer* b, Sink* k, const Division* f, int64_t start, int64_t end, int64_t* units,
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


cdef int words_of(const uint8_t* p, int64_t n, int kind, const Division* f, Buffer* b, Sink* k) noexcept nogil:
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
                    c = about(f.info, character(p, &i, kind))
                    in_word = (c & WORD) != 0
            else:
                c = about(f.info, character(p, &i, kind))
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


cdef inline int64_t word_ends(Buffer* b, Sink* k, const Division* f, int64_t start, int64_t end, int64_t letters,
                              int64_t* units) noexcept nogil:
    if letters < f.shortest or letters > f.longest:
        return start
    if f.stop != NULL and find(f.stop, b.bytes + start, end - start, hash_of(b.bytes + start, end - start)) >= 0:
        return start
    return unit_ends(b, k, f, start, end, units, True)


cdef int characters_of(const uint8_t* p, int64_t n, int kind, const Division* f, Buffer* b, Sink* k) noexcept nogil:
    """The n-grams of the characters of one document, where two or more white spaces are one blank."""
    cdef int64_t i = 0, pos = 0, end, units = 0, stop, blanks = 0
    cdef uint32_t c, blank = 0
    while i < n and not k.failed:
        stop = min(n, i + SPAN // 2)
        while i < stop:
            if make_room(b, pos) < 0:
                return -1
            c = about(f.info, character(p, &i, kind))
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


cdef int within_words_of(const uint8_t* p, int64_t n, int kind, const Division* f, Buffer* b, Sink* k) noexcept nogil:
    """The n-grams of the characters of each word, a run without white space, with a blank at both its ends.

    A word that is shorter than the shortest n-gram is one itself.
    """
    cdef int64_t i = 0, pos = 0, units = 0
    cdef uint32_t c
    while i < n and not k.failed:
        if make_room(b, pos) < 0:
            return -1
        c = about(f.info, character(p, &i, kind))
        if c & SPACE:
            if units:
                pos = within_ends(b, k, f, pos, &units)
            continue
        if units == 0:
            b.bytes[pos] = 32
            pos = unit_ends(b, k, f, pos, pos + 1, &units, False)
        pos = unit_ends(b, k, f, pos, pos + encode(c & CODE, b.bytes + pos), &units, False)
    if units and not k.failed:
        if make_room(b, pos) < 0:
            return -1
        within_ends(b, k, f, pos, &units)
    return -1 if k.failed else 0


cdef inline int64_t within_ends(Buffer* b, Sink* k, const Division* f, int64_t pos, int64_t* units) noexcept nogil:
    """Close a word; where the next one may be written."""
    b.bytes[pos] = 32
    pos = unit_ends(b, k, f, pos, pos + 1, units, False)
    if units[0] < f.low:
        take(k, f, b, b.starts[0], pos - b.starts[0])
    units[0] = 0
    if pos > SHORT:  # no term reaches back into another word
        settle(k, b)
        return 0
    return pos


cdef inline int document(const uint8_t* p, int64_t n, int kind, const Division* f, Buffer* b, Sink* k) noexcept nogil:
    cdef int failed
    if f.unit == WORDS:
        failed = words_of(p, n, kind, f, b, k)
    elif f.unit == CHARACTERS:
        failed = characters_of(p, n, kind, f, b, k)
    else:
        failed = within_words_of(p, n, kind, f, b, k)
    settle(k, b)
    return -1 if failed or k.failed else 0


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
        if about(info, c) & SPECIAL:
            return False
    return True
