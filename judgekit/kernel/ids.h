/* Ids as bytes, and the reply that is made of many cases.

   Only what is plain is decided in these files: ids that are ASCII and not blank, which are compared byte by byte. For
   anything else the reply is None, and the caller finds the figures in Python, as it does everywhere where this module
   was not built. Both ways give the same figures; `_kernel.pyi` says what the functions take and return.

   Nothing that could run code of the caller (an allocation that collects garbage, a buffer that is asked for) comes
   between the first look at an id and the last: ids are known to be exactly of type str before they are looked at, and
   what holds them is held here. */

#ifndef JUDGEKIT_IDS_H
#define JUDGEKIT_IDS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <assert.h>
#include <string.h>

#define MAX_GOLD 64 /* gold ids of a case; with more of them Python's sets win */

/* Instead of a number of gold ids: */
#define NOT_PLAIN -1
#define FAILED -2

typedef struct {
    const char *text;
    Py_ssize_t size;
} Id;

static inline int
is_ascii(PyObject *value)
{
    return PyUnicode_CheckExact(value) && PyUnicode_IS_COMPACT_ASCII(value);
}

static inline Id
id_of(PyObject *ascii)
{
    Id id = {(const char *)PyUnicode_1BYTE_DATA(ascii), PyUnicode_GET_LENGTH(ascii)};
    return id;
}

/* Whether an id is surely not blank: what begins with a blank is left to Python. */
static inline int
is_visible(Id id)
{
    return id.size > 0 && id.text[0] > ' ';
}

/* Ids, none of which is empty, of one collection differ in their last letter more often than in their first. */
static inline int
are_equal(Id one, Id other)
{
    assert(one.size > 0 && other.size > 0);
    return one.size == other.size && one.text[one.size - 1] == other.text[other.size - 1]
           && !memcmp(one.text, other.text, (size_t)one.size);
}

static inline Py_ssize_t
index_in(const Id *ids, Py_ssize_t n, Id wanted)
{
    for (Py_ssize_t i = 0; i < n; i++) {
        if (are_equal(ids[i], wanted)) {
            return i;
        }
    }
    return -1;
}

/* What is asked, case by case, as tuples of this call alone; and the reply: ascending ranks, None where these are to be
   found in Python, and a number, for each case. */
typedef struct {
    PyObject *golds;
    PyObject *lists;
    PyObject *ranks;
    PyObject *numbers;
    Py_ssize_t n;
} Cases;

/* Each returns 0 with an error set. */
int begin(Cases *cases, PyObject *golds, PyObject *lists);
int put(Cases *cases, Py_ssize_t i, PyObject *ranks, Py_ssize_t number); /* takes over the reference to ranks */

/* The reply as a tuple, or NULL; lets go of everything. */
PyObject *end(Cases *cases, int is_good);

PyObject *tuple_of(const Py_ssize_t *ranks, Py_ssize_t n);

/* The distinct ids of a set, list or tuple, MAX_GOLD at most: their number, NOT_PLAIN, or FAILED with an error set. */
Py_ssize_t gold_of(PyObject *given, Id *gold);

PyObject *ranks_in_lists(PyObject *module, PyObject *args);
PyObject *ranks_in_texts(PyObject *module, PyObject *args);
PyObject *queries_of_run(PyObject *module, PyObject *args);
PyObject *ranks_in_run(PyObject *module, PyObject *args);

#endif
