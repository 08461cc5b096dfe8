#include "ids.h"

#ifndef SOURCES
#define SOURCES "" /* a hash of them, given by hatch_build.py */
#endif

PyObject *
tuple_of(const long *ranks, Py_ssize_t n)
{
    PyObject *made = PyTuple_New(n);
    for (Py_ssize_t i = 0; made != NULL && i < n; i++) {
        PyObject *rank = PyLong_FromLong(ranks[i]);
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
begin(Reply *reply, PyObject *golds, PyObject *lists)
{
    Py_ssize_t n = PyList_GET_SIZE(golds);
    reply->ranks = PyList_New(n);
    reply->numbers = PyList_New(n);
    if (PyList_GET_SIZE(lists) != n) {
        PyErr_SetString(PyExc_ValueError, "as many lists as collections of gold ids are needed");
        return 0;
    }
    return reply->ranks != NULL && reply->numbers != NULL;
}

int
put(Reply *reply, Py_ssize_t i, PyObject *ranks, Py_ssize_t number)
{
    if (ranks == NULL) {
        return 0;
    }
    PyList_SET_ITEM(reply->ranks, i, ranks);
    PyObject *made = PyLong_FromSsize_t(number);
    if (made == NULL) {
        return 0;
    }
    PyList_SET_ITEM(reply->numbers, i, made);
    return 1;
}

PyObject *
end(Reply *reply, int is_good)
{
    PyObject *made = is_good ? PyTuple_Pack(2, reply->ranks, reply->numbers) : NULL;
    Py_XDECREF(reply->ranks);
    Py_XDECREF(reply->numbers);
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
