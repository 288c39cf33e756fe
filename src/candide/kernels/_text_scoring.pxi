# Scoring: the weights of the known terms of documents, added up, or the terms themselves as sparse rows.

cdef class Scorer(Form):
    """Looks the terms of documents up among known ones."""

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


cdef int marks_open(Sink* k, uint32_t n) except -1:
    k.last = <int32_t*> calloc(n + 1, sizeof(int32_t))
    k.times = <uint32_t*> calloc(n + 1, sizeof(uint32_t))
    if k.last == NULL or k.times == NULL:
        raise MemoryError("no room to mark the terms of a document")
    return 0


cdef void copy_listed(double[::1] data, int32_t[::1] indices, const uint32_t* times, const uint32_t* touched):
    cdef Py_ssize_t i
    for i in range(data.shape[0]):
        data[i] = times[i]
        indices[i] = <int32_t> touched[i]
