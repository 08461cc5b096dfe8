/* Ranks of gold ids in lists that are JSON. */

#include "ids.h"

/* Reading of one list. The text is ASCII without backslashes, and valid JSON, which the caller has seen to; with any
   other text these functions still stay within it. */
typedef struct {
    const char *at;
    const char *end;
    int is_last; /* no entry follows */
} Cursor;

typedef int (*Reader)(Cursor *, Id *);

static void
skip_blanks(Cursor *cursor)
{
    while (cursor->at < cursor->end && (*cursor->at == ' ' || *cursor->at == '\t' || *cursor->at == '\r')) {
        cursor->at++;
    }
}

static int
take(Cursor *cursor, char wanted)
{
    skip_blanks(cursor);
    if (cursor->at == cursor->end || *cursor->at != wanted) {
        return 0;
    }
    cursor->at++;
    return 1;
}

static int
take_text(Cursor *cursor, Id *text)
{
    if (!take(cursor, '"')) {
        return 0;
    }
    const char *close = memchr(cursor->at, '"', (size_t)(cursor->end - cursor->at));
    if (close == NULL) {
        return 0;
    }
    text->text = cursor->at;
    text->size = close - cursor->at;
    cursor->at = close + 1;
    return 1;
}

/* A number that is surely finite as a float: at most 24 bytes, at most two of them behind an `e`. */
static int
take_number(Cursor *cursor)
{
    skip_blanks(cursor);
    const char *start = cursor->at, *exponent = NULL;
    for (; cursor->at < cursor->end && *cursor->at != '\0' && strchr("+-.0123456789eE", *cursor->at); cursor->at++) {
        if (*cursor->at == 'e' || *cursor->at == 'E') {
            exponent = cursor->at + 1;
        }
    }
    if (exponent != NULL && exponent < cursor->at && (*exponent == '+' || *exponent == '-')) {
        exponent++;
    }
    return cursor->at > start && cursor->at - start <= 24 && (exponent == NULL || cursor->at - exponent <= 2);
}

static int
is_named(Id key, const char *name)
{
    return key.size == (Py_ssize_t)strlen(name) && !memcmp(key.text, name, (size_t)key.size);
}

/* A hit whose document is its path, with no more than a text and a score; 0 where it is anything else. Of fields that
   come twice the last counts, as everywhere. */
static int
take_hit(Cursor *cursor, Id *id)
{
    Id doc = {NULL, 0}, path = {NULL, 0}, key, text;
    if (!take(cursor, '{')) {
        return 0;
    }
    do {
        if (!take_text(cursor, &key) || !take(cursor, ':')) {
            return 0;
        }
        int is_doc = is_named(key, "doc_id");
        if (is_doc || is_named(key, "rel_path")) {
            Id *wanted = is_doc ? &doc : &path;
            if (!take_text(cursor, wanted)) {
                return 0;
            }
        }
        else if (!(is_named(key, "text") && take_text(cursor, &text))
                 && !(is_named(key, "score") && take_number(cursor))) {
            return 0;
        }
    } while (take(cursor, ','));
    if (!take(cursor, '}') || doc.text == NULL || path.text == NULL || doc.size != path.size
        || memcmp(doc.text, path.text, (size_t)doc.size)) {
        return 0;
    }
    *id = doc;
    return 1;
}

static int
take_entry(Cursor *cursor, Reader read, Id *id)
{
    if (!read(cursor, id)) {
        return 0;
    }
    cursor->is_last = !take(cursor, ',');
    return !cursor->is_last || take(cursor, ']');
}

/* Whether a gold id stands between quotes anywhere in the rest of a text. */
static int
is_in_rest(const Id *gold, Py_ssize_t n_gold, const Cursor *cursor)
{
    const char *quote = cursor->at;
    while ((quote = memchr(quote, '"', (size_t)(cursor->end - quote))) != NULL) {
        quote++;
        for (Py_ssize_t i = 0; i < n_gold; i++) {
            if (cursor->end - quote > gold[i].size && quote[gold[i].size] == '"'
                && !memcmp(quote, gold[i].text, (size_t)gold[i].size)) {
                return 1;
            }
        }
    }
    return 0;
}

/* Ranks in one list: a new tuple, None, or NULL with an error set; and how many entries stand within the depth. Entries
   behind it are looked at only where none before is right, and what is odd there matters only if gold follows. */
static PyObject *
ranks_in_text(const Id *gold, Py_ssize_t n_gold, Cursor cursor, Reader read, Py_ssize_t depth, Py_ssize_t *n_hits)
{
    char is_found[MAX_GOLD] = {0};
    Py_ssize_t ranks[MAX_GOLD];
    Py_ssize_t n = 0, rank = 0;
    Id id;
    if (!take(&cursor, '[')) {
        Py_RETURN_NONE;
    }
    cursor.is_last = take(&cursor, ']');
    while (!cursor.is_last && rank < depth) {
        if (!take_entry(&cursor, read, &id) || !is_visible(id)) {
            Py_RETURN_NONE;
        }
        rank++;
        Py_ssize_t which = index_in(gold, n_gold, id);
        if (which >= 0) {
            if (is_found[which]) { /* what comes twice is right twice */
                Py_RETURN_NONE;
            }
            is_found[which] = 1;
            ranks[n++] = rank;
        }
    }
    *n_hits = rank;
    while (n_gold && !n && !cursor.is_last) {
        Cursor before = cursor;
        if (!take_entry(&cursor, read, &id) || !is_visible(id)) {
            if (is_in_rest(gold, n_gold, &before)) {
                Py_RETURN_NONE;
            }
            break;
        }
        rank++;
        if (index_in(gold, n_gold, id) >= 0) {
            ranks[n++] = rank;
        }
    }
    return tuple_of(ranks, n);
}

PyObject *
ranks_in_texts(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *golds, *texts;
    Py_ssize_t depth;
    int with_hits;
    if (!PyArg_ParseTuple(args, "OOnp", &golds, &texts, &depth, &with_hits)) {
        return NULL;
    }
    Cases cases;
    int is_good = begin(&cases, golds, texts);
    for (Py_ssize_t i = 0; is_good && i < cases.n; i++) {
        Id gold[MAX_GOLD];
        Py_ssize_t n_hits = 0;
        Py_buffer text;
        PyObject *ranks = NULL;
        if (!PyObject_GetBuffer(PyTuple_GET_ITEM(cases.lists, i), &text, PyBUF_SIMPLE)) {
            Py_ssize_t n_gold = gold_of(PyTuple_GET_ITEM(cases.golds, i), gold);
            Cursor cursor = {text.buf, (const char *)text.buf + text.len, 0};
            if (n_gold == NOT_PLAIN) {
                ranks = Py_NewRef(Py_None);
            }
            else if (n_gold >= 0) {
                ranks = ranks_in_text(gold, n_gold, cursor, with_hits ? take_hit : take_text, depth, &n_hits);
            }
            PyBuffer_Release(&text);
        }
        is_good = put(&cases, i, ranks, n_hits);
    }
    return end(&cases, is_good);
}
