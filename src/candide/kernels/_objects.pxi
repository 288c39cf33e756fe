# Objects of a column, each of which stands in many rows: the same object, or the same text.

from cpython.object cimport PyObject_Hash
from cpython.ref cimport PyObject
from cpython.unicode cimport PyUnicode_CheckExact
from libc.string cimport memcmp

cdef extern from "Python.h":
    Py_ssize_t PyUnicode_GET_LENGTH(object)
    int PyUnicode_KIND(object)
    void *PyUnicode_DATA(object)


def distinct(values, Py_ssize_t most):
    """The rows at which distinct objects stand first, and the place of each row's object among these.

    Text is the same letter by letter, any other object if it is that object. None where there are more than ``most``.
    """
    cdef list column = values.tolist()
    cdef Py_ssize_t n = len(column), size = 16, r, at, mask, k = 0
    while size < 2 * min(n, most) + 2:
        size *= 2
    mask = size - 1
    cdef int32_t[::1] slots = np.full(size, -1, np.int32)  # the place of an object; -1: none
    cdef Py_hash_t[::1] keys = np.empty(size, np.intp)
    first_met, places = np.empty(max(0, min(n, most)), np.intp), np.empty(n, np.int32)
    cdef Py_ssize_t[::1] first = first_met
    cdef int32_t[::1] place = places
    cdef Py_hash_t key
    for r in range(n):
        value = column[r]
        key = PyObject_Hash(value) if PyUnicode_CheckExact(value) else <Py_hash_t>(<uint64_t><PyObject *>value >> 4)
        at = key & mask
        while slots[at] >= 0 and not (keys[at] == key and _same(column[first[slots[at]]], value)):
            at = (at + 1) & mask
        if slots[at] < 0:
            if k >= most:
                return None
            slots[at], keys[at], first[k] = <int32_t>k, key, r
            k += 1
        place[r] = slots[at]
    return first_met[:k], places


cdef inline bint _same(object a, object b):
    """Whether two objects are one, or one text. Equal texts have their letters in equal width."""
    if a is b:
        return True
    if not (PyUnicode_CheckExact(a) and PyUnicode_CheckExact(b)) or PyUnicode_KIND(a) != PyUnicode_KIND(b):
        return False
    cdef Py_ssize_t n = PyUnicode_GET_LENGTH(a)
    return PyUnicode_GET_LENGTH(b) == n and memcmp(PyUnicode_DATA(a), PyUnicode_DATA(b), n * PyUnicode_KIND(a)) == 0
