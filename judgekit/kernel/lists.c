/* Ranks of gold ids in lists of str. */

#include "ids.h"

/* Ranks in one list: a new tuple, None, or NULL with an error set. */
static PyObject *
ranks_in_list(const Id *gold, Py_ssize_t n_gold, PyObject *list, Py_ssize_t depth)
{
    if (!PyList_CheckExact(list) && !PyTuple_CheckExact(list)) {
        Py_RETURN_NONE;
    }
    PyObject **ids = PySequence_Fast_ITEMS(list);
    Py_ssize_t size = PySequence_Fast_GET_SIZE(list), n = 0, i = 0;
    char is_found[MAX_GOLD] = {0};
    Py_ssize_t ranks[MAX_GOLD];
    for (; i < size && i < depth; i++) {
        if (!is_ascii(ids[i]) || !is_visible(id_of(ids[i]))) {
            Py_RETURN_NONE;
        }
        Py_ssize_t which = index_in(gold, n_gold, id_of(ids[i]));
        if (which >= 0 && !is_found[which]) {
            is_found[which] = 1;
            ranks[n++] = i + 1;
        }
    }
    if (n > 0) {
        return tuple_of(ranks, n);
    }
    /* Only the first right id counts there, but what is no id is to be named wherever it stands. */
    for (; i < size; i++) {
        if (!is_ascii(ids[i]) || !is_visible(id_of(ids[i]))) {
            Py_RETURN_NONE;
        }
        if (n == 0 && index_in(gold, n_gold, id_of(ids[i])) >= 0) {
            ranks[n++] = i + 1;
        }
    }
    return tuple_of(ranks, n);
}

PyObject *
ranks_in_lists(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *golds, *lists;
    Py_ssize_t depth;
    if (!PyArg_ParseTuple(args, "OOn", &golds, &lists, &depth)) {
        return NULL;
    }
    Cases cases;
    int is_good = begin(&cases, golds, lists);
    for (Py_ssize_t i = 0; is_good && i < cases.n; i++) {
        Id gold[MAX_GOLD];
        Py_ssize_t n_gold = gold_of(PyTuple_GET_ITEM(cases.golds, i), gold);
        PyObject *ranks = NULL;
        if (n_gold == NOT_PLAIN) {
            ranks = Py_NewRef(Py_None);
        }
        else if (n_gold >= 0) {
            ranks = ranks_in_list(gold, n_gold, PyTuple_GET_ITEM(cases.lists, i), depth);
        }
        is_good = put(&cases, i, ranks, n_gold);
    }
    return end(&cases, is_good);
}
