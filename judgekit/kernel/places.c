#include "places.h"

static uint64_t
hash_of(Id id)
{
    uint64_t hash = (uint64_t)id.size, word;
    const char *at = id.text;
    Py_ssize_t left = id.size;
    while (left > 0) {
        size_t n = left < 8 ? (size_t)left : 8;
        word = 0;
        memcpy(&word, at, n);
        hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 32;
        at += n;
        left -= (Py_ssize_t)n;
    }
    return hash;
}

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
