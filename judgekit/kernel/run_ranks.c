/* The ranks of gold ids in the queries of a TREC run. */

#include "places.h"

#define FEW_GOLD 8 /* gold ids up to which comparing with each beats a table */

typedef struct {
    const char *piece;
    const Place *places;
    Table table;
    size_t first; /* row of the query */
    size_t n;     /* its rows */
} Hits;

static int
compare_ranks(const void *one, const void *other)
{
    Py_ssize_t a = *(const Py_ssize_t *)one, b = *(const Py_ssize_t *)other;
    return (a > b) - (a < b);
}

/* The ranks of few gold ids. */
static Py_ssize_t
ranks_of_few(const Hits *hits, PyObject *given, Py_ssize_t *ranks)
{
    Id gold[FEW_GOLD];
    Py_ssize_t n_gold = 0, n = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given); i++) {
        PyObject *one = PyTuple_GET_ITEM(given, i);
        if (is_ascii(one) && PyUnicode_GET_LENGTH(one)) { /* others equal no document of the piece */
            gold[n_gold++] = id_of(one);
        }
    }
    for (size_t i = 0; i < hits->n && n < n_gold; i++) {
        if (index_in(gold, n_gold, id_at(hits->piece, hits->places[hits->first + i])) >= 0) {
            ranks[n++] = (Py_ssize_t)i + 1;
        }
    }
    return n;
}

/* The ranks of many gold ids; -1 with an error set. */
static Py_ssize_t
ranks_of_many(Hits *hits, PyObject *given, Py_ssize_t *ranks)
{
    Py_ssize_t n = 0;
    for (size_t row = hits->first; row < hits->first + hits->n; row++) {
        if (!make_room(&hits->table, hits->piece, hits->places, hits->first, row)) {
            return -1;
        }
        Id document = id_at(hits->piece, hits->places[row]);
        *slot_of(&hits->table, hits->piece, hits->places, hits->first, document) = (uint32_t)row + 1;
    }
    for (Py_ssize_t i = 0; hits->n && i < PyTuple_GET_SIZE(given); i++) {
        PyObject *one = PyTuple_GET_ITEM(given, i);
        if (is_ascii(one) && PyUnicode_GET_LENGTH(one)) {
            uint32_t row = *slot_of(&hits->table, hits->piece, hits->places, hits->first, id_of(one));
            if (row > hits->first) {
                ranks[n++] = (Py_ssize_t)(row - hits->first);
            }
        }
    }
    qsort(ranks, (size_t)n, sizeof(Py_ssize_t), compare_ranks);
    return n;
}

static PyObject *
ranks_in_query(Hits *hits, PyObject *given)
{
    Py_ssize_t few[FEW_GOLD], *ranks = few;
    Py_ssize_t n_gold = PyTuple_GET_SIZE(given), n;
    if (n_gold <= FEW_GOLD) {
        n = ranks_of_few(hits, given, ranks);
        return tuple_of(ranks, n);
    }
    ranks = PyMem_Malloc((size_t)n_gold * sizeof(Py_ssize_t));
    if (ranks == NULL) {
        return PyErr_NoMemory();
    }
    n = ranks_of_many(hits, given, ranks);
    PyObject *made = n < 0 ? NULL : tuple_of(ranks, n);
    PyMem_Free(ranks);
    return made;
}

/* Whether the rows of a query are there, and their documents within the piece. */
static int
are_there(const Hits *hits, Py_ssize_t n, size_t n_rows, size_t size)
{
    if (n < 0 || (size_t)n > n_rows - hits->first) {
        return 0;
    }
    for (size_t row = hits->first; row < hits->first + (size_t)n; row++) {
        Place place = hits->places[row];
        if (place.size == 0 || place.size > size || place.start > size - place.size) {
            return 0;
        }
    }
    return 1;
}

PyObject *
ranks_in_run(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *piece, *places, *sizes, *golds;
    if (!PyArg_ParseTuple(args, "SSOO", &piece, &places, &sizes, &golds)) {
        return NULL;
    }
    Cases cases;
    int is_good = begin(&cases, golds, sizes);
    size_t n_rows = (size_t)PyBytes_GET_SIZE(places) / sizeof(Place), size = (size_t)PyBytes_GET_SIZE(piece);
    /* The bytes were made from an array of places, and those of an object are aligned for any type. */
    Hits hits = {.piece = PyBytes_AS_STRING(piece), .places = (const Place *)PyBytes_AS_STRING(places)};
    for (Py_ssize_t i = 0; is_good && i < cases.n; i++) {
        PyObject *gold = PyTuple_GET_ITEM(cases.golds, i), *ranks = NULL;
        Py_ssize_t n = PyLong_AsSsize_t(PyTuple_GET_ITEM(cases.lists, i));
        if (PyTuple_CheckExact(gold) && are_there(&hits, n, n_rows, size)) {
            hits.n = (size_t)n;
            ranks = ranks_in_query(&hits, gold);
            hits.first += hits.n;
        }
        else if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "sizes, places or gold ids of other queries");
        }
        is_good = put(&cases, i, ranks, n);
    }
    PyMem_Free(hits.table.rows);
    return end(&cases, is_good);
}
