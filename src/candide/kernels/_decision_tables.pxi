# Decision tables: questions that put rows into cells, chosen by sums of whole numbers, and the scores of the cells.

cdef extern from *:
    """
    #include <math.h>
    #include <stdint.h>
    #include <stdlib.h>
    #include <string.h>
    #if defined(__GNUC__) && !defined(__clang__)
    /* The same gains with and without fused multiplication: they are compared. */
    #define CANDIDE_UNFUSED __attribute__((optimize("fp-contract=off")))
    #else
    #define CANDIDE_UNFUSED
    #endif
    #define CANDIDE_CODES 256
    #define CANDIDE_MANY 8 /* sums of a bin where classes are many: up to 6 slopes, none, the curvature */

    typedef struct {
        const uint8_t *codes; /* (column, row) */
        int64_t n_rows;
        int n_columns;
        const int32_t *sizes;   /* codes of a column */
        const uint8_t *kinds;   /* 0: numbers; 1: numbers, code 0 also last; 2: levels, in the order of their slopes */
        const int32_t *starts;  /* (column + 1) of its bins among all */
        int n_slopes;           /* 1: slope and curvature are one 64-bit number, else CANDIDE_MANY numbers of 32 bits */
        double ridge, level_ridge;
    } candide_growth;

    /* Sums of the rows of a cell in every bin of four columns: their sums do not wait for each other. */
    static void candide_sum_one(const candide_growth *g, int j0, int w, const int32_t *rows, const int64_t *q,
                                int64_t n, int64_t *const out[4]) {
        const uint8_t *c[4];
        int v;
        int64_t i;
        for (v = 0; v < w; v++) {
            c[v] = g->codes + (int64_t)(j0 + v) * g->n_rows;
            memset(out[v], 0, sizeof(int64_t) * g->sizes[j0 + v]);
        }
        if (w == 4)
            for (i = 0; i < n; i++) {
                const int64_t r = rows[i], x = q[i];
                out[0][c[0][r]] += x; out[1][c[1][r]] += x; out[2][c[2][r]] += x; out[3][c[3][r]] += x;
            }
        else
            for (v = 0; v < w; v++)
                for (i = 0; i < n; i++) out[v][c[v][rows[i]]] += q[i];
    }

    static void candide_sum_many(const candide_growth *g, int j, const int32_t *rows, const int32_t *q, int64_t n,
                                 int32_t *out) {
        const uint8_t *c = g->codes + (int64_t)j * g->n_rows;
        int64_t i;
        int u;
        memset(out, 0, sizeof(int32_t) * CANDIDE_MANY * g->sizes[j]);
        for (i = 0; i < n; i++) {
            int32_t *bin = out + (int64_t)c[rows[i]] * CANDIDE_MANY;
            const int32_t *x = q + i * CANDIDE_MANY;
            for (u = 0; u < CANDIDE_MANY; u++) bin[u] += x[u];
        }
    }

    #define CANDIDE_SLOPE(x) ((int32_t)(uint32_t)(x))
    #define CANDIDE_CURVATURE(x) ((int32_t)(((x) - CANDIDE_SLOPE(x)) >> 32))

    /* gain[t] += what cutting one cell after the t-th code in an order gains, by its sums */
    CANDIDE_UNFUSED static void candide_gain_one(const int64_t *bin, const uint8_t *order, int n, float ridge,
                                                 float *gain) {
        float left[CANDIDE_CODES], curve[CANDIDE_CODES];
        int64_t total = 0, sum = 0;
        int t;
        for (t = 0; t < n; t++) total += bin[t];
        for (t = 0; t < n - 1; t++) {
            sum += bin[order[t]];
            left[t] = (float)CANDIDE_SLOPE(sum);
            curve[t] = (float)CANDIDE_CURVATURE(sum);
        }
        const float g = (float)CANDIDE_SLOPE(total), h = (float)CANDIDE_CURVATURE(total), whole = g * g / (h + ridge);
        for (t = 0; t < n - 1; t++) {
            const float right = g - left[t];
            gain[t] += left[t] * left[t] / (curve[t] + ridge) + right * right / (h - curve[t] + ridge) - whole;
        }
    }

    CANDIDE_UNFUSED static void candide_gain_many(const int32_t *bin, const uint8_t *order, int n, int s, float ridge,
                                                  float *gain) {
        float left[CANDIDE_MANY][CANDIDE_CODES], x[CANDIDE_CODES], z[CANDIDE_CODES], whole = 0;
        int32_t total[CANDIDE_MANY] = {0}, sum[CANDIDE_MANY] = {0};
        int t, u;
        for (t = 0; t < n; t++)
            for (u = 0; u < CANDIDE_MANY; u++) total[u] += bin[t * CANDIDE_MANY + u];
        for (t = 0; t < n - 1; t++) {
            const int32_t *b = bin + (int)order[t] * CANDIDE_MANY;
            for (u = 0; u < CANDIDE_MANY; u++) sum[u] += b[u];
            for (u = 0; u < CANDIDE_MANY; u++) left[u][t] = (float)sum[u];
        }
        for (u = 0; u < s; u++) {
            const float g = (float)total[u];
            whole += g * g;
            for (t = 0; t < n - 1; t++) {
                const float l = left[u][t], right = g - l;
                x[t] = u ? x[t] + l * l : l * l;
                z[t] = u ? z[t] + right * right : right * right;
            }
        }
        const float h = (float)total[CANDIDE_MANY - 1];
        whole /= h + ridge;
        for (t = 0; t < n - 1; t++) {
            const float l = left[CANDIDE_MANY - 1][t];
            gain[t] += x[t] / (l + ridge) + z[t] / (h - l + ridge) - whole;
        }
    }

    static void candide_order_levels(const candide_growth *g, int j, const void *bins, uint8_t *order) {
        double key[CANDIDE_CODES];
        int n = g->sizes[j], t, i;
        for (t = 0; t < n; t++) {
            const int64_t one = ((const int64_t *)bins)[g->n_slopes == 1 ? t : 0];
            const int32_t *many = (const int32_t *)bins + t * CANDIDE_MANY;
            const double slope = g->n_slopes == 1 ? CANDIDE_SLOPE(one) : many[0];
            const double curve = g->n_slopes == 1 ? CANDIDE_CURVATURE(one) : many[CANDIDE_MANY - 1];
            key[t] = slope / (curve + g->level_ridge);
            for (i = t; i > 0 && key[order[i - 1]] > key[t]; i--) order[i] = order[i - 1];
            order[i] = (uint8_t)t;
        }
    }

    /* A table: columns (depth), -1 from where growth ended; sides (depth, 256): the answer of each code; cells (row).
       q: (row) numbers, in one 64-bit number or CANDIDE_MANY of 32 bits; luck (depth, column) is added to the roots of
       gains, which are in units of 1 / scale. Returns the number of questions, or -1 without memory. */
    CANDIDE_UNFUSED static int candide_grow(const candide_growth *g, const void *q, double scale, int depth,
                                            const float *luck, int32_t *columns, uint8_t *sides, uint8_t *cells) {
        const int64_t m = g->n_rows;
        const int d = g->n_columns, total = g->starts[d], one = g->n_slopes == 1, most = 1 << (depth - 1);
        const size_t width = one ? sizeof(int64_t) : CANDIDE_MANY * sizeof(int32_t), cell_size = width * total;
        char *old = malloc(cell_size * most), *now = depth > 1 ? malloc(cell_size * most) : 0;
        char *values = malloc(width * m), *moved = malloc(width * m);
        int32_t *rows = malloc(sizeof(int32_t) * m), *next = malloc(sizeof(int32_t) * m);
        uint8_t *orders = malloc((size_t)d * CANDIDE_CODES), *later = malloc((size_t)d * CANDIDE_CODES);
        int64_t start[257], fresh[257]; /* of the rows of each cell that is not empty */
        int path[256], fresh_path[256], parent[256], sibling[256], summed[256]; /* sibling: the other half, or -1 */
        int made = -1, n_cells = 1, level, j, c, t, i0;
        const float ridge = (float)(g->ridge / scale);
        if (!old || (depth > 1 && !now) || !values || !moved || !rows || !next || !orders || !later) goto done;
        for (int64_t i = 0; i < m; i++) rows[i] = (int32_t)i;
        memcpy(values, q, width * m);
        memset(cells, 0, m);
        start[0] = 0, start[1] = m, path[0] = 0, parent[0] = -1, sibling[0] = -1, summed[0] = 1;
        for (made = 0, level = 0; level < depth; level++) {
            float best = 0.0f;
            int best_column = -1, best_cut = -1, best_last = 0;
            if (level) { char *swap = old; old = now; now = swap; } /* sums are made in old, from now: the level before */
            for (i0 = 0; i0 < d; i0 += 4) {
                const int w = d - i0 < 4 ? d - i0 : 4;
                for (c = 0; c < n_cells; c++) {
                    if (!summed[c]) continue;
                    char *at = old + cell_size * c;
                    const int64_t a = start[c], n = start[c + 1] - a;
                    if (one) {
                        int64_t *out[4];
                        for (j = 0; j < w; j++) out[j] = (int64_t *)at + g->starts[i0 + j];
                        candide_sum_one(g, i0, w, rows + a, (const int64_t *)values + a, n, out);
                    } else
                        for (j = i0; j < i0 + w; j++)
                            candide_sum_many(g, j, rows + a, (const int32_t *)values + a * CANDIDE_MANY, n,
                                             (int32_t *)at + (size_t)g->starts[j] * CANDIDE_MANY);
                }
                for (c = 0; c < n_cells; c++) { /* the larger half: the whole without the smaller */
                    if (summed[c]) continue;
                    const size_t a = width * g->starts[i0], n = (width * g->starts[i0 + w] - a);
                    const char *whole = now + cell_size * parent[c] + a;
                    char *out = old + cell_size * c + a;
                    if (sibling[c] < 0) { memcpy(out, whole, n); continue; }
                    const char *half = old + cell_size * sibling[c] + a;
                    if (one)
                        for (t = 0; t < (int)(n / 8); t++)
                            ((int64_t *)out)[t] = ((const int64_t *)whole)[t] - ((const int64_t *)half)[t];
                    else
                        for (t = 0; t < (int)(n / 4); t++)
                            ((int32_t *)out)[t] = ((const int32_t *)whole)[t] - ((const int32_t *)half)[t];
                }
                for (j = i0; j < i0 + w; j++) {
                    const int n = g->sizes[j];
                    uint8_t *order = orders + (size_t)j * CANDIDE_CODES, *last = later + (size_t)j * CANDIDE_CODES;
                    if (n < 2) continue;
                    if (level == 0) {
                        for (t = 0; t < n; t++) order[t] = (uint8_t)t, last[t] = (uint8_t)((t + 1) % n);
                        if (g->kinds[j] == 2) candide_order_levels(g, j, old + width * g->starts[j], order);
                    }
                    for (int way = 0; way < 1 + (g->kinds[j] == 1); way++) {
                        float gain[CANDIDE_CODES] = {0}, top = 0;
                        int cut = -1;
                        for (c = 0; c < n_cells; c++) {
                            const char *bins = old + cell_size * c + width * g->starts[j];
                            if (start[c + 1] - start[c] < 2) continue;
                            if (one) candide_gain_one((const int64_t *)bins, way ? last : order, n, ridge, gain);
                            else candide_gain_many((const int32_t *)bins, way ? last : order, n, g->n_slopes, ridge, gain);
                        }
                        /* the last cut with code 0 last is the first cut with code 0 first */
                        for (t = 0; t < n - 1 - way; t++) if (gain[t] > top) top = gain[t], cut = t;
                        top *= (float)scale;
                        if (cut < 0 || !(top > 1e-6f)) continue;
                        top = sqrtf(top) + luck[level * d + j];
                        if (best_column < 0 || top > best) best = top, best_column = j, best_cut = cut, best_last = way;
                    }
                }
            }
            if (best_column < 0) break;
            uint8_t *side = sides + (size_t)level * CANDIDE_CODES;
            const uint8_t *order = (best_last ? later : orders) + (size_t)best_column * CANDIDE_CODES;
            const uint8_t *code = g->codes + (int64_t)best_column * m;
            memset(side, 0, CANDIDE_CODES);
            for (t = best_cut + 1; t < g->sizes[best_column]; t++) side[order[t]] = 1;
            columns[level] = best_column;
            made = level + 1;
            int k = 0;
            for (c = 0; c < n_cells; c++) { /* stably: the rows that answer no, then those that answer yes */
                int64_t a = start[c], b = start[c + 1], no = a, yes = 0, i;
                for (i = a; i < b; i++) yes += side[code[rows[i]]];
                int64_t place = b - yes;
                const int64_t middle = place;
                for (i = a; i < b; i++) {
                    const int answer = side[code[rows[i]]];
                    int64_t *to = answer ? &place : &no;
                    next[*to] = rows[i];
                    if (one) ((int64_t *)moved)[*to] = ((const int64_t *)values)[i];
                    else memcpy(moved + width * *to, values + width * i, width);
                    cells[rows[i]] = (uint8_t)(2 * path[c] + answer);
                    ++*to;
                }
                const int64_t n_no = middle - a, n_yes = b - middle;
                if (n_no) {
                    fresh[k] = a, fresh_path[k] = 2 * path[c], parent[k] = c;
                    sibling[k] = n_yes ? k + 1 : -1, summed[k] = n_yes && n_no <= n_yes, k++;
                }
                if (n_yes) {
                    fresh[k] = middle, fresh_path[k] = 2 * path[c] + 1, parent[k] = c;
                    sibling[k] = n_no ? k - 1 : -1, summed[k] = n_no && n_yes < n_no, k++;
                }
            }
            fresh[k] = m, n_cells = k;
            memcpy(start, fresh, sizeof(int64_t) * (k + 1));
            memcpy(path, fresh_path, sizeof(int) * k);
            int32_t *swap_rows = rows; rows = next; next = swap_rows;
            char *swap_values = values; values = moved; moved = swap_values;
        }
    done:
        free(old); free(now); free(values); free(moved); free(rows); free(next); free(orders); free(later);
        return made;
    }

    /* cells (row) of one table: codes (column, row). A question whose answers rise once is a comparison. */
    static void candide_find_cells(const uint8_t *codes, int64_t stride, int64_t n, const int32_t *columns,
                                   const uint8_t *sides, const int16_t *first, int depth, uint8_t *cells) {
        memset(cells, 0, n);
        for (int level = 0; level < depth && columns[level] >= 0; level++) {
            const uint8_t *code = codes + columns[level] * stride, *side = sides + (size_t)level * CANDIDE_CODES;
            int64_t i;
            if (first[level] >= 0) {
                const uint8_t least = (uint8_t)first[level];
                for (i = 0; i < n; i++) cells[i] = (uint8_t)(2 * cells[i] + (code[i] >= least));
            } else
                for (i = 0; i < n; i++) cells[i] = (uint8_t)(2 * cells[i] + side[code[i]]);
        }
    }
    """
    ctypedef struct candide_growth:
        const uint8_t *codes
        int64_t n_rows
        int n_columns
        const int32_t *sizes
        const uint8_t *kinds
        const int32_t *starts
        int n_slopes
        double ridge, level_ridge
    int candide_grow(
        const candide_growth *g, const void *q, double scale, int depth, const float *luck, int32_t *columns,
        uint8_t *sides, uint8_t *cells
    ) noexcept nogil
    void candide_find_cells(
        const uint8_t *codes, int64_t stride, int64_t n, const int32_t *columns, const uint8_t *sides,
        const int16_t *first, int depth, uint8_t *cells
    ) noexcept nogil

cdef enum:
    TABLE_ROWS = 512  # rows whose cells are found together


def grow_table(codes, sizes, kinds, slopes, curvature, double scale, luck, double ridge, double level_ridge):
    """The questions of a decision table, and the cell of each row; see the NumPy reference."""
    cdef const uint8_t[:, ::1] code = codes
    cdef const int32_t[::1] size = np.asarray(sizes, np.int32)
    cdef const uint8_t[::1] kind = np.asarray(kinds, np.uint8)
    cdef const float[:, ::1] lucky = np.asarray(luck, np.float32)
    cdef Py_ssize_t m = code.shape[1], d = code.shape[0], depth = lucky.shape[0], s = slopes.shape[1]
    cdef const int32_t[::1] starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    _require(slopes.shape[0] == m and curvature.shape[0] == m, "the codes and the slopes differ in length")
    _require(size.shape[0] == d and kind.shape[0] == d and lucky.shape[1] == d, "the columns differ in number")
    _require(1 <= depth <= 8 and 1 <= s <= 6 and d > 0 and m > 0, "a table has 1 to 8 questions, 1 to 6 slopes, rows")
    _require(bool((np.asarray(sizes) >= 1).all() and (np.asarray(sizes) <= 256).all()), "a column has 1 to 256 codes")
    _require(bool((codes.max(axis=1) < np.asarray(sizes)).all()), "a code lies outside its column's")
    if s == 1:
        packed = (np.asarray(curvature, np.int64) << 32) + np.asarray(slopes, np.int64)[:, 0]
    else:
        packed = np.zeros((m, 8), np.int32)
        packed[:, :s] = slopes
        packed[:, 7] = curvature
    packed = np.ascontiguousarray(packed).reshape(-1)
    cdef const uint8_t[::1] memory = packed.view(np.uint8)
    columns, sides, cells = np.full(depth, -1, np.int32), np.zeros((depth, 256), np.uint8), np.empty(m, np.uint8)
    cdef int32_t[::1] column = columns
    cdef uint8_t[:, ::1] side = sides
    cdef uint8_t[::1] cell = cells
    cdef candide_growth g
    cdef int made
    g.codes, g.n_rows, g.n_columns, g.sizes, g.kinds = &code[0, 0], m, <int>d, &size[0], &kind[0]
    g.starts, g.n_slopes, g.ridge, g.level_ridge = &starts[0], <int>s, ridge, level_ridge / scale
    with nogil:
        made = candide_grow(&g, &memory[0], scale, <int>depth, &lucky[0, 0], &column[0], &side[0, 0], &cell[0])
    if made < 0:
        raise MemoryError("no memory for the sums of a decision table")
    return columns[:made], sides[:made], cells


cdef class Tables:
    """Decision tables, checked: questions (table, question), sides (table, question, 256), values (table, cell, class)."""

    cdef const int32_t[:, ::1] columns
    cdef const uint8_t[:, :, ::1] sides
    cdef const int16_t[:, ::1] first  # the first code on the side of yes; -1 where that is not all from there on
    cdef const float[:, :, ::1] values
    cdef readonly Py_ssize_t n_tables, depth, n_cells, n_classes, n_columns

    def __cinit__(self, columns, sides, values):
        # Copies of its own: what was checked is what is used.
        columns, sides = np.array(columns, np.int32, order="C"), np.array(sides, np.uint8, order="C")
        values = np.array(values, np.float32, order="C")
        _require(columns.ndim == 2 and sides.ndim == 3 and values.ndim == 3, "columns must have 2 dimensions, others 3")
        self.n_tables, self.depth = columns.shape[0], columns.shape[1]
        self.n_cells, self.n_classes = values.shape[1], values.shape[2]
        _require(self.depth <= 8 and self.n_cells == 1 << self.depth, "a table has up to 8 questions, 2^n cells")
        _require(sides.shape[0] == self.n_tables and sides.shape[1] == self.depth, "sides and questions differ")
        _require(sides.shape[2] == 256 and values.shape[0] == self.n_tables, "sides and values differ")
        _require(bool((sides <= 1).all()), "an answer is 0 or 1")
        self.n_columns = int(columns.max(initial=-1)) + 1
        self.columns, self.sides, self.values = columns, sides, values
        rises = (np.diff(sides.astype(np.int8), axis=2) >= 0).all(axis=2) & (sides[:, :, 255] == 1)
        self.first = np.where(rises, 256 - sides.sum(axis=2, dtype=np.int16), -1).astype(np.int16)


def table_cells(codes, Tables tables not None):
    """(table, row) the cell of each row of codes (column, row) in each table."""
    cdef const uint8_t[:, ::1] code = codes
    cdef Py_ssize_t t, n = code.shape[1]
    _require(code.shape[0] >= tables.n_columns, "a table asks of a column that there is not")
    out = np.zeros((tables.n_tables, n), np.uint8)
    cdef uint8_t[:, ::1] cell = out
    if n and tables.depth:
        with nogil:
            for t in range(tables.n_tables):
                candide_find_cells(
                    &code[0, 0], n, n, &tables.columns[t, 0], &tables.sides[t, 0, 0], &tables.first[t, 0],
                    <int>tables.depth, &cell[t, 0]
                )
    return out


def add_tables(codes, sizes, Tables tables not None, weight, out):
    """out[r, c] += weight[t] times the value of the cell of row r in each table; codes (row, column), -1 if absent.

    A code that is absent or not below its column's size counts as 0, any other as its number plus 1. Returns how many
    values are absent.
    """
    cdef CodeTable rows = CodeTable(codes, np.concatenate([[0], np.cumsum(sizes)]))
    cdef const double[::1] w = np.ascontiguousarray(weight, np.float64)
    cdef double[:, :] target = out
    cdef Py_ssize_t a = 0, b, n, i, j, c, t, k = target.shape[1], d = rows.n_features, n_absent = 0, total
    cdef int64_t code
    _require(target.shape[0] == rows.n_rows and k <= tables.n_classes, "out and the rows or classes differ")
    _require(w.shape[0] == tables.n_tables and d >= tables.n_columns, "the weights or columns and the tables differ")
    _require(bool((np.asarray(sizes) <= 255).all()), "a column has more than 255 codes")
    cdef Py_ssize_t most = max(1, min(TABLE_ROWS, rows.n_rows))
    cdef uint8_t[:, ::1] small = np.zeros((max(1, d), most), np.uint8)
    cdef uint8_t[::1] cell = np.zeros(most, np.uint8)
    cdef double[:, ::1] score = np.zeros((most, max(1, k)))
    cdef const float *value
    with nogil:
        while a < rows.n_rows:
            total = min(most, rows.n_rows - a)
            b = 0
            while b < total:
                n = min(rows.n_tile, total - b)
                rows.load(a + b, n)
                for i in range(n):
                    for j in range(d):
                        code = rows.code[rows.row + i, j]
                        n_absent += code < 0
                        small[j, b + i] = <uint8_t>(code + 1) if 0 <= code < rows.sizes[j] else 0
                b += n
            score[:total] = 0.0
            for t in range(tables.n_tables):
                if w[t] == 0.0:
                    continue
                candide_find_cells(
                    &small[0, 0], most, total, &tables.columns[t, 0], &tables.sides[t, 0, 0], &tables.first[t, 0],
                    <int>tables.depth, &cell[0]
                )
                if k == 2:
                    for i in range(total):
                        value = &tables.values[t, cell[i], 0]
                        score[i, 0] += w[t] * value[0]
                        score[i, 1] += w[t] * value[1]
                else:
                    for i in range(total):
                        value = &tables.values[t, cell[i], 0]
                        for c in range(k):
                            score[i, c] += w[t] * value[c]
            for i in range(total):
                for c in range(k):
                    target[a + i, c] += score[i, c]
            a += total
    return n_absent


def cell_sums(cells, values):
    """(256, column) the sums of the values (row, column) of the rows of each cell."""
    cdef const uint8_t[::1] cell = cells
    cdef const double[:, ::1] value = values
    cdef Py_ssize_t i, c, n = value.shape[0], k = value.shape[1]
    _require(cell.shape[0] == n, "the cells and the values differ in length")
    sums = np.zeros((256, k))
    cdef double[:, ::1] out = sums
    with nogil:
        for i in range(n):
            for c in range(k):
                out[cell[i], c] += value[i, c]
    return sums
