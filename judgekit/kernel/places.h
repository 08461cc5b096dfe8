/* Documents of the lines of a run by their places in a piece of it, and a table in which they are found. */

#ifndef JUDGEKIT_PLACES_H
#define JUDGEKIT_PLACES_H

#include "ids.h"

#include <stdint.h>

typedef struct {
    uint32_t start;
    uint32_t size;
} Place;

static inline Id
id_at(const char *piece, Place place)
{
    Id id = {piece + place.start, place.size};
    return id;
}

/* Row numbers by the id that stands in the row. Rows only grow, so what a former query left is known by a row before the
   first of this one. Such a slot counts as free, and nothing is ever cleared: what was put in for this query was put in
   past none but its own rows, so the way to it stays closed. */
typedef struct {
    uint32_t *rows; /* each one more than the row, 0 for none; to be freed by PyMem_Free */
    size_t n_slots; /* a power of two */
} Table;

/* The slot of an id among the rows from `first` on: that of an equal one, or one that is free. */
uint32_t *slot_of(const Table *table, const char *piece, const Place *places, size_t first, Id id);

/* Make room for the rows from `first` up to `row`, half of the slots at most; 0 with an error set. */
int make_room(Table *table, const char *piece, const Place *places, size_t first, size_t row);

#endif
