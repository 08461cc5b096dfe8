#include "ids.h"

#ifndef SOURCES
#define SOURCES "" /* a hash of them, given by hatch_build.py */
#endif

PyObject *
tuple_of(const Py_ssize_t *ranks, Py_ssize_t n)
{
    PyObject *made = PyTuple_New(n);
    for (Py_ssize_t i = 0; made != NULL && i < n; i++) {
        PyObject *rank = PyLong_FromSsize_t(ranks[i]);
        if (rank == NULL) {
            Py_CLEAR(made);
        }
        else {
            PyTuple_SET_ITEM(made, i, rank);
        }
    }
    return made;
}

Py_ssize_t
gold_of(PyObject *given, Id *gold)
{
    if (!PyAnySet_CheckExact(given) && !PyList_CheckExact(given) && !PyTuple_CheckExact(given)) {
        return NOT_PLAIN;
    }
    PyObject *iterator = PyObject_GetIter(given), *one;
    if (iterator == NULL) {
        return FAILED;
    }
    Py_ssize_t n = 0;
    while (n >= 0 && (one = PyIter_Next(iterator)) != NULL) {
        if (!is_ascii(one) || !is_visible(id_of(one))) {
            n = NOT_PLAIN;
        }
        else if (index_in(gold, n, id_of(one)) < 0) {
            if (n == MAX_GOLD) {
                n = NOT_PLAIN;
            }
            else {
                gold[n++] = id_of(one);
            }
        }
        Py_DECREF(one); /* the collection still holds it */
    }
    Py_DECREF(iterator);
    return PyErr_Occurred() ? FAILED : n;
}

int
begin(Cases *cases, PyObject *golds, PyObject *lists)
{
    memset(cases, 0, sizeof(*cases));
    cases->golds = PySequence_Tuple(golds);
    cases->lists = cases->golds == NULL ? NULL : PySequence_Tuple(lists);
    if (cases->lists == NULL) {
        return 0;
    }
    cases->n = PyTuple_GET_SIZE(cases->golds);
    if (PyTuple_GET_SIZE(cases->lists) != cases->n) {
        PyErr_SetString(PyExc_ValueError, "as many lists as collections of gold ids are needed");
        return 0;
    }
    cases->ranks = PyList_New(cases->n);
    cases->numbers = PyList_New(cases->n);
    return cases->ranks != NULL && cases->numbers != NULL;
}

int
put(Cases *cases, Py_ssize_t i, PyObject *ranks, Py_ssize_t number)
{
    if (ranks == NULL) {
        return 0;
    }
    PyList_SET_ITEM(cases->ranks, i, ranks);
    PyObject *made = PyLong_FromSsize_t(ranks == Py_None ? 0 : number);
    if (made == NULL) {
        return 0;
    }
    PyList_SET_ITEM(cases->numbers, i, made);
    return 1;
}

PyObject *
end(Cases *cases, int is_good)
{
    PyObject *made = is_good ? PyTuple_Pack(2, cases->ranks, cases->numbers) : NULL;
    Py_XDECREF(cases->golds);
    Py_XDECREF(cases->lists);
    Py_XDECREF(cases->ranks);
    Py_XDECREF(cases->numbers);
    return made;
}

static PyMethodDef methods[] = {
    {"ranks_in_lists", ranks_in_lists, METH_VARARGS, NULL},
    {"ranks_in_texts", ranks_in_texts, METH_VARARGS, NULL},
    {"queries_of_run", queries_of_run, METH_VARARGS, NULL},
    {"ranks_in_run", ranks_in_run, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static int
fill(PyObject *module)
{
    return PyModule_AddStringConstant(module, "SOURCES", SOURCES);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, fill},
    {0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "judgekit.kernel._kernel", .m_methods = methods, .m_slots = slots,
};

PyMODINIT_FUNC
PyInit__kernel(void)
{
    return PyModuleDef_Init(&module);
}
