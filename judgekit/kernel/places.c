#include "places.h"

/* Python's own hash, which has a secret in it, so that nobody can write ids that all meet in one slot. */
#if PY_VERSION_HEX >= 0x030E0000
#define hash_of(id) Py_HashBuffer((id).text, (id).size)
#else
PyAPI_FUNC(Py_hash_t) _Py_HashBytes(const void *, Py_ssize_t); /* no header has it in every version */
#define hash_of(id) _Py_HashBytes((id).text, (id).size)
#endif

uint32_t *
slot_of(const Table *table, const char *piece, const Place *places, size_t first, Id id)
{
    size_t mask = table->n_slots - 1, slot = (size_t)hash_of(id) & mask;
    while (table->rows[slot] > first && !are_equal(id_at(piece, places[table->rows[slot] - 1]), id)) {
        slot = (slot + 1) & mask;
    }
    return table->rows + slot;
}

int
make_room(Table *table, const char *piece, const Place *places, size_t first, size_t row)
{
    if (2 * (row - first + 1) <= table->n_slots) {
        return 1;
    }
    Table larger = {NULL, table->n_slots ? 2 * table->n_slots : 1024};
    while (larger.n_slots < 2 * (row - first + 1)) {
        larger.n_slots *= 2;
    }
    larger.rows = PyMem_Calloc(larger.n_slots, sizeof(uint32_t));
    if (larger.rows == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    for (size_t one = first; one < row; one++) {
        *slot_of(&larger, piece, places, first, id_at(piece, places[one])) = (uint32_t)one + 1;
    }
    PyMem_Free(table->rows);
    *table = larger;
    return 1;
}
