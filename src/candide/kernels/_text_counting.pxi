# Counting: the terms of documents class by class, and the counts of two tallies added.

cdef class Counter(Form):
    """Counts the terms of documents."""

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
        cdef bint whole = manner != SUBLINEAR and bool((np.asarray(weight) == 1.0).all())
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
                for column, part in zip(cells, flushed(&k, whole), strict=True):
                    column.append(part)
            free(store.slots)  # nothing is looked up any more, and the keys are about to be there twice
            store.slots = NULL
            letters, starts = keys_of(&store)
        finally:
            buffer_close(&b)
            store_close(&store)
            free(k.touched)
            give_back()
        columns = [joined(cells[0], np.int32), joined(cells[1], np.float64), joined(cells[2], np.float64)]
        give_back()
        return letters, starts, np.cumsum(sizes), *columns, length


cdef object flushed(Sink* k, bint whole):
    """The cells of the class that ends: (key, total, documents); their entries begin again at zero.

    Whole numbers wait for the other classes as such, in half the room.
    """
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
    if whole and n and np.abs(total).max() < 0x7FFFFFFF:
        return key, total.astype(np.int32), documents.astype(np.int32)
    return key, total, documents


def joined(parts, dtype):
    """Arrays one after another; each is given up as soon as it is copied."""
    out = np.empty(sum(map(len, parts)), dtype)
    end = len(out)
    while parts:
        part = parts.pop()
        out[end - len(part) : end] = part
        end -= len(part)
    return out


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
    cdef int64_t before = words.store.n
    places = np.empty(len(more_starts), np.int64)
    look_up_all(&words.store, np.ascontiguousarray(more_letters, np.uint8), more_starts, True, places)
    places = places[: len(more_starts) - 1]
    return places, np.flatnonzero(places >= before)


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
