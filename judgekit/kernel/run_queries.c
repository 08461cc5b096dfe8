/* The queries of a piece of a TREC run. */

#include "places.h"

#include <math.h>

#define N_CELLS 6
#define MOST_DIGITS 15    /* so that the digits of a number, and its power of ten, are exact as floats */
#define LONGEST_NUMBER 64 /* bytes */

static const double POWERS[MOST_DIGITS + 1] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                               1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};

/* ---- lines ------------------------------------------------------------------------------------------------------- */

typedef struct {
    Id query;
    Id document;
    double score;
} Line;

/* What parts cells; a line feed ends the line, and other control characters are left to Python. */
static inline int
is_blank(char letter)
{
    return letter == ' ' || (letter >= '\t' && letter <= '\r' && letter != '\n');
}

/* A finite number, exactly as Python reads it; 0 where it is none, or with an error set. */
static int
number_of(Id cell, double *value)
{
    const char *at = cell.text, *end = cell.text + cell.size;
    int is_negative = *at == '-', n_digits = 0, n_behind = 0, is_behind = 0;
    uint64_t digits = 0;
    for (at += is_negative; at < end; at++) {
        if (*at >= '0' && *at <= '9' && n_digits < MOST_DIGITS) {
            digits = 10 * digits + (uint64_t)(*at - '0');
            n_digits++;
            n_behind += is_behind;
        }
        else if (*at == '.' && !is_behind) {
            is_behind = 1;
        }
        else {
            break;
        }
    }
    if (at == end && n_digits > 0) {
        /* Both are exact, so that the division is all that is rounded (Clinger 1990). */
        *value = (double)digits / POWERS[n_behind];
        *value = is_negative ? -*value : *value;
        return 1;
    }
    char copy[LONGEST_NUMBER];
    char *stop;
    if (cell.size >= LONGEST_NUMBER) {
        return 0;
    }
    memcpy(copy, cell.text, (size_t)cell.size);
    copy[cell.size] = '\0';
    *value = PyOS_string_to_double(copy, &stop, NULL);
    if (PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_ValueError)) {
            PyErr_Clear();
        }
        return 0;
    }
    return stop == copy + cell.size && isfinite(*value);
}

/* The line that begins at a place, and where the next begins; NULL where it is out of the ordinary. */
static const char *
take_line(const char *at, const char *end, Line *line)
{
    Id cells[N_CELLS];
    for (int i = 0; i < N_CELLS; i++) {
        while (at < end && is_blank(*at)) {
            at++;
        }
        const char *start = at;
        while (at < end && *at > ' ') {
            at++;
        }
        if (at == start || (at < end && *at != '\n' && !is_blank(*at))) {
            return NULL;
        }
        cells[i].text = start;
        cells[i].size = at - start;
    }
    if (cells[0].text[0] == '#' || !number_of(cells[4], &line->score)) {
        return NULL;
    }
    line->query = cells[0];
    line->document = cells[2];
    const char *feed = at < end && *at == '\n' ? at : memchr(at, '\n', (size_t)(end - at));
    return feed == NULL ? end : feed + 1;
}

/* ---- queries ----------------------------------------------------------------------------------------------------- */

/* What is known of the query whose lines are being read, and of those before. */
typedef struct {
    const char *piece;
    Place *places;
    Table table;
    int by_single;
    size_t first; /* row of the query */
    Id query;
    double last; /* score */
    Py_ssize_t n_tied;
    int is_odd;
    Py_ssize_t all_tied, queries_tied;
    PyObject *keys, *starts, *sizes, *odd;
} Queries;

static int
append_number(PyObject *list, Py_ssize_t number)
{
    PyObject *made = PyLong_FromSsize_t(number);
    int is_good = made != NULL && !PyList_Append(list, made);
    Py_XDECREF(made);
    return is_good;
}

/* The query ends before a row; 0 with an error set. */
static int
close_query(Queries *queries, size_t row)
{
    PyObject *key = PyUnicode_DecodeASCII(queries->query.text, queries->query.size, NULL);
    int is_good = key != NULL && !PyList_Append(queries->keys, key)
                  && append_number(queries->starts, queries->query.text - queries->piece)
                  && append_number(queries->sizes, (Py_ssize_t)(row - queries->first));
    Py_XDECREF(key);
    if (is_good && queries->is_odd) {
        return append_number(queries->odd, PyList_GET_SIZE(queries->keys) - 1);
    }
    queries->all_tied += queries->n_tied;
    queries->queries_tied += queries->n_tied > 0;
    return is_good;
}

static int
add_line(Queries *queries, size_t row, const Line *line)
{
    int is_first = row == 0 || !are_equal(line->query, queries->query);
    /* What is beyond the floats becomes infinite, by IEC 60559, as in trec_eval. */
    double score = queries->by_single ? (double)(float)line->score : line->score;
    if (is_first) {
        if (row && !close_query(queries, row)) {
            return 0;
        }
        queries->first = row;
        queries->query = line->query;
        queries->is_odd = 0;
        queries->n_tied = 0;
    }
    else if (score > queries->last || (queries->by_single && score == queries->last)) {
        queries->is_odd = 1;
    }
    else if (score == queries->last) {
        queries->n_tied++;
    }
    queries->last = score;
    Place place = {(uint32_t)(line->document.text - queries->piece), (uint32_t)line->document.size};
    queries->places[row] = place;
    if (!make_room(&queries->table, queries->piece, queries->places, queries->first, row)) {
        return 0;
    }
    uint32_t *slot = slot_of(&queries->table, queries->piece, queries->places, queries->first, line->document);
    if (*slot > queries->first) {
        queries->is_odd = 1;
    }
    *slot = (uint32_t)row + 1;
    return 1;
}

/* The rows of the lines that were read; -1 with an error set, -2 where some line is out of the ordinary. */
static Py_ssize_t
read_lines(Queries *queries, const char *end, int is_last)
{
    const char *at = queries->piece;
    size_t row = 0;
    Line line;
    for (; at < end; row++) {
        at = take_line(at, end, &line);
        if (at == NULL) {
            return PyErr_Occurred() ? -1 : -2;
        }
        if (!add_line(queries, row, &line)) {
            return -1;
        }
    }
    if (!is_last) {
        return (Py_ssize_t)queries->first;
    }
    return row && !close_query(queries, row) ? -1 : (Py_ssize_t)row;
}

static PyObject *
found_queries(Queries *queries, const char *end, int is_last)
{
    /* A line has six cells of one letter and as many blanks at least. */
    size_t most = (size_t)(end - queries->piece) / (2 * N_CELLS) + 1;
    PyObject *places = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(most * sizeof(Place)));
    if (places == NULL) {
        return NULL;
    }
    queries->places = (Place *)PyBytes_AS_STRING(places);
    Py_ssize_t n = read_lines(queries, end, is_last);
    PyObject *reply = NULL;
    if (n == -2) {
        reply = Py_NewRef(Py_None);
    }
    else if (n >= 0 && !_PyBytes_Resize(&places, n * (Py_ssize_t)sizeof(Place))) {
        Py_ssize_t used = is_last ? end - queries->piece : queries->query.text - queries->piece;
        reply = Py_BuildValue("(OOOOnnnO)", queries->keys, queries->starts, queries->sizes, queries->odd,
                              queries->all_tied, queries->queries_tied, used, places);
    }
    Py_XDECREF(places);
    return reply;
}

PyObject *
queries_of_run(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *piece;
    int is_last, by_single;
    if (!PyArg_ParseTuple(args, "Spp", &piece, &is_last, &by_single)) {
        return NULL;
    }
    if ((uint64_t)PyBytes_GET_SIZE(piece) >= UINT32_MAX) {
        Py_RETURN_NONE;
    }
    Queries queries = {.piece = PyBytes_AS_STRING(piece), .by_single = by_single};
    queries.query.text = queries.piece;
    queries.keys = PyList_New(0);
    queries.starts = PyList_New(0);
    queries.sizes = PyList_New(0);
    queries.odd = PyList_New(0);
    PyObject *reply = NULL;
    if (queries.keys != NULL && queries.starts != NULL && queries.sizes != NULL && queries.odd != NULL) {
        reply = found_queries(&queries, queries.piece + PyBytes_GET_SIZE(piece), is_last);
    }
    Py_XDECREF(queries.keys);
    Py_XDECREF(queries.starts);
    Py_XDECREF(queries.sizes);
    Py_XDECREF(queries.odd);
    PyMem_Free(queries.table.rows);
    return reply;
}
