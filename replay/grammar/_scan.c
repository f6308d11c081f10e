/* What the fast way of reading does for each byte: cut lines, run compiled productions over them, and turn pieces of
 * them into columns. `replay.grammar.scan` compiles productions to the words that `match` runs, and holds the same in
 * Python for where this module was not built. Nothing here knows a format.
 *
 * Texts are pieces [start, end) of one buffer, in 32 bits each; a start below 0 is an absent text. They are ASCII and
 * hold no newline: others are left to Python. All results are bytes objects that numpy reads without a copy.
 */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { OP_MATCH, OP_LITERAL, OP_SET, OP_REPEAT, OP_SPLIT, OP_JUMP, OP_SAVE, OP_BEHIND, OP_AHEAD, OP_AHEAD_END, OP_END, OP_BEGIN };
enum { GREEDY, POSSESSIVE, LAZY };
enum { BACK_BRANCH, BACK_GREEDY, BACK_LAZY, BACK_SLOT };
enum { ANYTHING = -1, UNSURE = -2, NOBODY = -1 };
/* words of a program's head, and of each of its productions */
/* Raised whenever functions or words change their meaning: replay.grammar.texts wants the same. */
enum { AGREED = 3 };
enum { HEAD_SLOTS, HEAD_FIRST, HEAD_PRODUCTIONS, HEAD_WORDS };
enum { PROD_ENTRY, PROD_SLOTS, PROD_SHORTEST, PROD_NEEDLE, PROD_WORDS };

#define MOST_BACKTRACKS 1000000 /* of one text and production: Python may think about it for longer */
#define SET_SIZE 256

typedef struct {
    int32_t kind, pc, a, b;
} Back;

typedef struct {
    const int32_t *words;
    const unsigned char *sets, *text;
    int32_t begin, end;
    int32_t *slots;
    Back *stack;
    int32_t used, room, failures;
} Machine;

static int push(Machine *m, int32_t kind, int32_t pc, int32_t a, int32_t b) {
    if (m->used == m->room) {
        int32_t room = m->room ? m->room * 2 : 256;
        Back *grown = realloc(m->stack, sizeof(Back) * (size_t)room);
        if (!grown) return 0;
        m->stack = grown;
        m->room = room;
    }
    m->stack[m->used++] = (Back){kind, pc, a, b};
    return 1;
}

static inline int takes(const Machine *m, int32_t set, int32_t at) {
    return set == ANYTHING || m->sets[(size_t)set * SET_SIZE + m->text[at]];
}

/* 1: the text is taken; 0: not; UNSURE: out of memory or patience. */
static int run(Machine *m, int32_t pc, int32_t at) {
    const int32_t *w = m->words, base = m->used;
    for (;;) {
        switch (w[pc]) {
        case OP_MATCH:
            if (at == m->end) {
                m->used = base;
                return 1;
            }
            goto fail;
        case OP_AHEAD_END:
            m->used = base;
            return 1;
        case OP_LITERAL: {
            int32_t size = w[pc + 1];
            const unsigned char *literal = (const unsigned char *)(w + pc + 2);
            if (m->end - at < size || m->text[at] != *literal) goto fail;
            if (size > 1 && memcmp(m->text + at, literal, (size_t)size)) goto fail;
            at += size;
            pc += 2 + (size + 3) / 4;
            continue;
        }
        case OP_SET:
            if (at >= m->end || !takes(m, w[pc + 1], at)) goto fail;
            at++;
            pc += 2;
            continue;
        case OP_REPEAT: {
            int32_t set = w[pc + 1], least = w[pc + 2], most = w[pc + 3], kind = w[pc + 4];
            int32_t limit = most < 0 || most > m->end - at ? m->end : at + most, from = at;
            pc += 5;
            if (kind == LAZY) {
                for (; at < from + least; at++)
                    if (at >= limit || !takes(m, set, at)) goto fail;
                if (at < limit && !push(m, BACK_LAZY, pc, at, limit)) return UNSURE;
                continue;
            }
            if (set == ANYTHING)
                at = limit;
            else {
                const unsigned char *members = m->sets + (size_t)set * SET_SIZE;
                while (at < limit && members[m->text[at]]) at++;
            }
            if (at < from + least) goto fail;
            if (kind == GREEDY && at > from + least && !push(m, BACK_GREEDY, pc, from + least, at - 1)) return UNSURE;
            continue;
        }
        case OP_SPLIT:
            if (!push(m, BACK_BRANCH, w[pc + 2], at, 0)) return UNSURE;
            pc = w[pc + 1];
            continue;
        case OP_JUMP:
            pc = w[pc + 1];
            continue;
        case OP_SAVE: {
            int32_t slot = w[pc + 1];
            if (m->used && !push(m, BACK_SLOT, slot, m->slots[slot], 0)) return UNSURE;
            m->slots[slot] = at;
            pc += 2;
            continue;
        }
        case OP_BEHIND: { /* whether a character of the set stands before: set, is it to */
            int is = at > m->begin && takes(m, w[pc + 1], at - 1);
            if (is != w[pc + 2]) goto fail;
            pc += 3;
            continue;
        }
        case OP_AHEAD: { /* whether the words up to AHEAD_END take what follows: is it to, what comes next */
            int is = run(m, pc + 3, at);
            if (is == UNSURE) return UNSURE;
            if (is != w[pc + 1]) goto fail;
            pc = w[pc + 2];
            continue;
        }
        case OP_END:
            if (at != m->end) goto fail;
            pc++;
            continue;
        case OP_BEGIN:
            if (at != m->begin) goto fail;
            pc++;
            continue;
        default:
            return UNSURE;
        }
    fail:
        if (++m->failures > MOST_BACKTRACKS) return UNSURE;
        for (;;) {
            if (m->used == base) return 0;
            Back *back = &m->stack[m->used - 1];
            pc = back->pc;
            if (back->kind == BACK_SLOT) {
                m->slots[pc] = back->a;
                m->used--;
                continue;
            }
            if (back->kind == BACK_BRANCH) {
                at = back->a;
                m->used--;
                break;
            }
            int literal = w[pc] == OP_LITERAL ? ((const unsigned char *)(w + pc + 2))[0] : -1;
            if (back->kind == BACK_GREEDY) { /* give one back: a is the least, b where to go on */
                at = back->b;
                if (literal >= 0)
                    while (at >= back->a && m->text[at] != literal) at--;
                if (at <= back->a) m->used--;
                else back->b = at - 1;
                if (at < back->a) continue;
                break;
            }
            /* BACK_LAZY: take one more; a is where it stands, b the limit. Before pc stands the repeat. */
            int32_t set = w[pc - 4];
            at = back->a;
            if (at >= back->b || !takes(m, set, at)) {
                m->used--;
                continue;
            }
            at++;
            if (literal >= 0)
                while (at < back->b && m->text[at] != literal && takes(m, set, at)) at++;
            back->a = at;
            break;
        }
    }
}

/* Whether a text holds a needle; it is looked for by the character at `rare`, of which texts hold few. */
static int contains(const unsigned char *text, int32_t size, const unsigned char *needle, int32_t length, int32_t rare) {
    const unsigned char *at = text + rare, *end = text + size - length + rare;
    while (at <= end) {
        at = memchr(at, needle[rare], (size_t)(end - at) + 1);
        if (!at) return 0;
        if (!memcmp(at - rare, needle, (size_t)length)) return 1;
        at++;
    }
    return 0;
}

/* The first production that takes the text [begin, end) of the machine, NOBODY or UNSURE; its groups are in the slots. */
static int first_taking(Machine *m) {
    const int32_t *w = m->words;
    int32_t size = m->end - m->begin;
    if (!size) return NOBODY; /* no production takes the empty text */
    const int32_t *candidate = w + w[w[HEAD_FIRST] + m->text[m->begin]];
    for (int32_t left = *candidate++; left; left--, candidate++) {
        const int32_t *production = w + w[HEAD_PRODUCTIONS] + (size_t)*candidate * PROD_WORDS;
        if (size < production[PROD_SHORTEST]) continue;
        if (production[PROD_NEEDLE]) {
            const int32_t *needle = w + production[PROD_NEEDLE];
            if (!contains(m->text + m->begin, size, (const unsigned char *)(needle + 2), needle[0], needle[1])) continue;
        }
        memset(m->slots, 0xff, sizeof(int32_t) * (size_t)production[PROD_SLOTS]);
        m->used = m->failures = 0;
        int is = run(m, production[PROD_ENTRY], m->begin);
        if (is) return is == UNSURE ? UNSURE : (int)*candidate;
    }
    return NOBODY;
}

typedef struct {
    Py_buffer view;
    Py_ssize_t count;
} Ints;

/* The texts that a function is asked about: data, starts, ends. */
typedef struct {
    Ints held[3];
    int opened;
    const unsigned char *data;
    const int32_t *starts, *ends;
    Py_ssize_t count;
} Pieces;

static int ints(PyObject *object, Ints *into, int flags, Py_ssize_t size) {
    if (PyObject_GetBuffer(object, &into->view, flags) < 0) return 0;
    into->count = into->view.len / size;
    return 1;
}

static int pieces_open(Pieces *p, PyObject **given) {
    for (p->opened = 0; p->opened < 3; p->opened++)
        if (!ints(given[p->opened], &p->held[p->opened], PyBUF_SIMPLE, p->opened ? 4 : 1)) return 0;
    p->data = p->held[0].view.buf;
    p->starts = p->held[1].view.buf;
    p->ends = p->held[2].view.buf;
    p->count = p->held[1].count;
    return 1;
}

static void pieces_close(Pieces *p) {
    while (p->opened) PyBuffer_Release(&p->held[--p->opened].view);
}

/* match(words, sets, data, starts, ends, taken: int16, spans: int32[slots, count]) -> None. Of a text only the slots of the
 * production that took it are written. */
static PyObject *match(PyObject *self, PyObject *args) {
    PyObject *given[7];
    if (!PyArg_ParseTuple(args, "OOOOOOO", given, given + 1, given + 2, given + 3, given + 4, given + 5, given + 6)) return NULL;
    static const int sizes[7] = {4, 1, 1, 4, 4, 2, 4};
    Ints b[7];
    int held = 0, ok = 1;
    for (; held < 7 && ok; held += ok)
        ok = ints(given[held], &b[held], held < 5 ? PyBUF_SIMPLE : PyBUF_WRITABLE, sizes[held]);
    if (!ok) goto done;
    const int32_t *w = b[0].view.buf, *starts = b[3].view.buf, *ends = b[4].view.buf;
    int16_t *taken = b[5].view.buf;
    int32_t *spans = b[6].view.buf, slots = w[HEAD_SLOTS];
    Py_ssize_t count = b[3].count;
    if (b[4].count != count || b[5].count != count || b[6].count != count * slots) {
        PyErr_SetString(PyExc_ValueError, "columns of different lengths");
        ok = 0;
        goto done;
    }
    const unsigned char *data = b[2].view.buf;
    Machine m = {.words = w, .sets = b[1].view.buf, .text = data};
    m.slots = malloc(sizeof(int32_t) * (size_t)(slots + 1));
    if (!m.slots) {
        PyErr_NoMemory();
        ok = 0;
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t n = 0; n < count; n++) {
        taken[n] = NOBODY;
        if (starts[n] < 0) continue;
        m.begin = starts[n];
        m.end = ends[n];
        int by = first_taking(&m);
        taken[n] = (int16_t)by;
        if (by < 0) continue;
        int32_t used = w[w[HEAD_PRODUCTIONS] + (size_t)by * PROD_WORDS + PROD_SLOTS];
        for (int32_t slot = 0; slot < used; slot++) spans[slot * count + n] = m.slots[slot];
    }
    Py_END_ALLOW_THREADS
    free(m.stack);
    free(m.slots);
done:
    while (held) PyBuffer_Release(&b[--held].view);
    if (!ok) return NULL;
    Py_RETURN_NONE;
}

/* one(words, sets, text: str) -> None | (production, groups...): the groups are texts or None; production -2: UNSURE. The text
 * is ASCII. */
static PyObject *one(PyObject *self, PyObject *args) {
    Py_buffer words, sets;
    PyObject *text;
    if (!PyArg_ParseTuple(args, "y*y*U", &words, &sets, &text)) return NULL;
    PyObject *result = NULL;
    Machine m = {.words = words.buf, .sets = sets.buf};
    Py_ssize_t size;
    m.text = (const unsigned char *)PyUnicode_AsUTF8AndSize(text, &size);
    if (m.text && size < INT32_MAX) {
        m.end = (int32_t)size;
        m.slots = malloc(sizeof(int32_t) * (size_t)(m.words[HEAD_SLOTS] + 1));
        int by = m.slots ? first_taking(&m) : UNSURE;
        if (by == NOBODY) {
            result = Py_None;
            Py_INCREF(result);
        } else {
            int32_t groups = by < 0 ? 0 : m.words[m.words[HEAD_PRODUCTIONS] + (size_t)by * PROD_WORDS + PROD_SLOTS] / 2;
            result = PyTuple_New(groups + 1);
            PyObject *item = result ? PyLong_FromLong(by) : NULL;
            for (int32_t g = 0; item; g++) {
                PyTuple_SetItem(result, g, item);
                if (g == groups) break;
                int32_t begin = m.slots[2 * g], end = m.slots[2 * g + 1];
                if (begin < 0) {
                    item = Py_None;
                    Py_INCREF(item);
                } else
                    item = PyUnicode_FromStringAndSize((const char *)m.text + begin, end - begin);
            }
            if (!item) Py_CLEAR(result);
        }
        free(m.slots);
        free(m.stack);
    }
    PyBuffer_Release(&words);
    PyBuffer_Release(&sets);
    return result;
}

/* split(data) -> (starts: int32, ends: int32, odd: uint8): the lines of the buffer, which are one more than its newlines. `odd` is
 * 1 for a line with a byte that is not ASCII, 2 for one with \r or ESC, 3 for both. */
static PyObject *split(PyObject *self, PyObject *args) {
    Py_buffer view;
    if (!PyArg_ParseTuple(args, "y*", &view)) return NULL;
    const unsigned char *data = view.buf, *at = data, *stop = data + view.len;
    Py_ssize_t room = 4096, count = 0;
    int32_t *starts = malloc(sizeof(int32_t) * (size_t)room), *ends = malloc(sizeof(int32_t) * (size_t)room);
    unsigned char *odd = malloc((size_t)room);
    int ok = starts && ends && odd;
    for (int is_last = 0; ok && !is_last;) {
        const unsigned char *end = memchr(at, '\n', (size_t)(stop - at));
        if (!end) {
            end = stop;
            is_last = 1;
        }
        if (count == room) {
            room *= 2;
            int32_t *more_starts = realloc(starts, sizeof(int32_t) * (size_t)room);
            if (more_starts) starts = more_starts;
            int32_t *more_ends = realloc(ends, sizeof(int32_t) * (size_t)room);
            if (more_ends) ends = more_ends;
            unsigned char *more_odd = realloc(odd, (size_t)room);
            if (more_odd) odd = more_odd;
            if (!(ok = more_starts && more_ends && more_odd)) break;
        }
        unsigned char high = 0, control = 0;
        for (const unsigned char *c = at; c < end; c++) {
            high |= *c;
            control |= (unsigned char)((*c == '\r') | (*c == 0x1b));
        }
        starts[count] = (int32_t)(at - data);
        ends[count] = (int32_t)(end - data);
        odd[count++] = (unsigned char)((high >> 7) | (control << 1));
        at = end + 1;
    }
    PyObject *result = NULL;
    if (ok)
        result = Py_BuildValue("y#y#y#", starts, (Py_ssize_t)sizeof(int32_t) * count, ends,
                               (Py_ssize_t)sizeof(int32_t) * count, odd, count);
    else
        PyErr_NoMemory();
    free(starts);
    free(ends);
    free(odd);
    PyBuffer_Release(&view);
    return result;
}

static uint64_t hashed(const unsigned char *text, size_t size) {
    uint64_t h = 0x9E3779B97F4A7C15u ^ size, word;
    for (; size >= 8; text += 8, size -= 8) {
        memcpy(&word, text, 8);
        h = (h ^ word) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    word = 0;
    memcpy(&word, text, size);
    h = (h ^ word) * 0xff51afd7ed558ccdu;
    return h ^ (h >> 29);
}

typedef struct {
    int32_t *places; /* number of the value + 1, 0: free */
    size_t mask;
    int32_t *firsts; /* where each value stands first */
    uint64_t *hashes;
    int32_t count, room;
} Table;

static int table_open(Table *t) {
    memset(t, 0, sizeof *t);
    t->mask = 255;
    t->places = calloc(t->mask + 1, sizeof(int32_t));
    return t->places != NULL;
}

static void table_close(Table *t) {
    free(t->places);
    free(t->firsts);
    free(t->hashes);
}

static int table_room(Table *t) {
    if (t->count < t->room) return 1;
    int32_t room = t->room ? t->room * 2 : 64;
    int32_t *firsts = realloc(t->firsts, sizeof(int32_t) * (size_t)room);
    if (firsts) t->firsts = firsts;
    uint64_t *hashes = realloc(t->hashes, sizeof(uint64_t) * (size_t)room);
    if (hashes) t->hashes = hashes;
    if (!firsts || !hashes) return 0;
    t->room = room;
    return 1;
}

static int table_add(Table *t, size_t slot, uint64_t hash, int32_t first) {
    if (!table_room(t)) return 0;
    t->firsts[t->count] = first;
    t->hashes[t->count] = hash;
    t->places[slot] = ++t->count;
    if ((size_t)t->count * 2 > t->mask) {
        size_t mask = (t->mask + 1) * 4 - 1;
        int32_t *places = calloc(mask + 1, sizeof(int32_t));
        if (!places) return 0;
        for (int32_t n = 0; n < t->count; n++) {
            size_t at = t->hashes[n] & mask;
            while (places[at]) at = (at + 1) & mask;
            places[at] = n + 1;
        }
        free(t->places);
        t->places = places;
        t->mask = mask;
    }
    return 1;
}

/* intern(data, starts, ends) -> (codes: int32, firsts: int32): equal texts have one code, in order of first sight; `firsts`
 * is where each stands first. Absent texts are a value of their own. */
static PyObject *intern(PyObject *self, PyObject *args) {
    PyObject *given[3];
    if (!PyArg_ParseTuple(args, "OOO", given, given + 1, given + 2)) return NULL;
    Pieces p;
    int ok = pieces_open(&p, given);
    PyObject *result = NULL;
    Table t = {0};
    int32_t *codes = NULL;
    if (!ok) goto done;
    const unsigned char *data = p.data;
    const int32_t *starts = p.starts, *ends = p.ends;
    Py_ssize_t count = p.count;
    codes = malloc(sizeof(int32_t) * (size_t)(count + 1));
    ok = codes && table_open(&t);
    int32_t absent = -1, before = -1;
    for (Py_ssize_t n = 0; ok && n < count; n++) {
        if (starts[n] < 0) {
            if (absent < 0) { /* a slot that no text looks at: found by number alone */
                if (!(ok = table_room(&t))) break;
                absent = t.count;
                t.firsts[absent] = (int32_t)n;
                t.hashes[absent] = 0;
                t.count++;
            }
            codes[n] = absent;
            continue;
        }
        size_t size = (size_t)(ends[n] - starts[n]);
        const unsigned char *text = data + starts[n];
        if (before >= 0) { /* logs repeat themselves */
            int32_t first = t.firsts[before];
            if ((size_t)(ends[first] - starts[first]) == size && !memcmp(data + starts[first], text, size)) {
                codes[n] = before;
                continue;
            }
        }
        uint64_t hash = hashed(text, size);
        size_t slot = hash & t.mask;
        int32_t found = -1;
        for (; t.places[slot]; slot = (slot + 1) & t.mask) {
            int32_t known = t.places[slot] - 1, first = t.firsts[known];
            if (t.hashes[known] == hash && starts[first] >= 0 && (size_t)(ends[first] - starts[first]) == size &&
                !memcmp(data + starts[first], text, size)) {
                found = known;
                break;
            }
        }
        if (found < 0) {
            found = t.count;
            ok = table_add(&t, slot, hash, (int32_t)n);
        }
        codes[n] = before = found;
    }
    if (ok)
        result = Py_BuildValue("y#y#", codes, (Py_ssize_t)sizeof(int32_t) * count, t.firsts ? t.firsts : (int32_t *)"",
                               (Py_ssize_t)sizeof(int32_t) * t.count);
    else
        PyErr_NoMemory();
done:
    free(codes);
    table_close(&t);
    pieces_close(&p);
    return result;
}

/* rank(keys: int64) -> (codes: int32, firsts: int32): as intern, of numbers. */
static PyObject *rank(PyObject *self, PyObject *args) {
    Py_buffer view;
    if (!PyArg_ParseTuple(args, "y*", &view)) return NULL;
    const int64_t *keys = view.buf;
    Py_ssize_t count = view.len / 8;
    int32_t *codes = malloc(sizeof(int32_t) * (size_t)(count + 1)), before = -1;
    Table t = {0};
    int ok = codes && table_open(&t);
    for (Py_ssize_t n = 0; ok && n < count; n++) {
        if (before >= 0 && keys[t.firsts[before]] == keys[n]) {
            codes[n] = before;
            continue;
        }
        uint64_t hash = hashed((const unsigned char *)(keys + n), 8);
        size_t slot = hash & t.mask;
        int32_t found = -1;
        for (; t.places[slot]; slot = (slot + 1) & t.mask)
            if (keys[t.firsts[t.places[slot] - 1]] == keys[n]) {
                found = t.places[slot] - 1;
                break;
            }
        if (found < 0) {
            found = t.count;
            ok = table_add(&t, slot, hash, (int32_t)n);
        }
        codes[n] = before = found;
    }
    PyObject *result = NULL;
    if (ok)
        result = Py_BuildValue("y#y#", codes, (Py_ssize_t)sizeof(int32_t) * count, t.firsts ? t.firsts : (int32_t *)"",
                               (Py_ssize_t)sizeof(int32_t) * t.count);
    else
        PyErr_NoMemory();
    free(codes);
    table_close(&t);
    PyBuffer_Release(&view);
    return result;
}

/* integers(data, starts, ends, base) -> (values: int64, states: uint8): state 0 a number, 1 absent, 2 for Python to say. */
static PyObject *integers(PyObject *self, PyObject *args) {
    PyObject *given[3];
    int base;
    if (!PyArg_ParseTuple(args, "OOOi", given, given + 1, given + 2, &base)) return NULL;
    Pieces p;
    int ok = pieces_open(&p, given);
    PyObject *result = NULL;
    int64_t *values = NULL;
    unsigned char *states = NULL;
    if (!ok) goto done;
    const unsigned char *data = p.data;
    const int32_t *starts = p.starts, *ends = p.ends;
    Py_ssize_t count = p.count;
    values = malloc(sizeof(int64_t) * (size_t)(count + 1));
    states = malloc((size_t)count + 1);
    if (!values || !states) {
        PyErr_NoMemory();
        goto done;
    }
    for (Py_ssize_t n = 0; n < count; n++) {
        values[n] = 0;
        states[n] = 1;
        if (starts[n] < 0) continue;
        const unsigned char *at = data + starts[n], *end = data + ends[n];
        int negative = at < end && *at == '-';
        at += negative;
        states[n] = 2;
        if (at == end || end - at > 15) continue;
        int64_t value = 0;
        for (; at < end; at++) {
            int digit = *at >= '0' && *at <= '9' ? *at - '0' : *at >= 'a' && *at <= 'f' ? *at - 'a' + 10 : *at >= 'A' && *at <= 'F' ? *at - 'A' + 10 : 99;
            if (digit >= base) break;
            value = value * base + digit;
        }
        if (at < end) continue;
        values[n] = negative ? -value : value;
        states[n] = 0;
    }
    result = Py_BuildValue("y#y#", values, (Py_ssize_t)sizeof(int64_t) * count, states, count);
done:
    free(values);
    free(states);
    pieces_close(&p);
    return result;
}

/* seconds(data, starts, ends, begin) -> float64: texts from their character `begin` on as numbers "29.204" or "29,204"; NaN
 * where one is absent, infinity for Python to say. */
static PyObject *seconds(PyObject *self, PyObject *args) {
    PyObject *given[3];
    int begin;
    if (!PyArg_ParseTuple(args, "OOOi", given, given + 1, given + 2, &begin)) return NULL;
    Pieces p;
    int ok = pieces_open(&p, given);
    PyObject *result = NULL;
    if (!ok) goto done;
    static const double powers[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    const unsigned char *data = p.data;
    const int32_t *starts = p.starts, *ends = p.ends;
    Py_ssize_t count = p.count;
    result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)sizeof(double) * count);
    if (!result) goto done;
    double *values = (double *)PyBytes_AsString(result);
    for (Py_ssize_t n = 0; n < count; n++) {
        values[n] = Py_NAN;
        if (starts[n] < 0) continue;
        values[n] = Py_HUGE_VAL;
        const unsigned char *at = data + starts[n] + begin, *end = data + ends[n];
        if (at >= end || end - at > 15) continue;
        int64_t value = 0;
        int fraction = -1, is_number = 1;
        for (; at < end; at++) {
            if ((*at == '.' || *at == ',') && fraction < 0) fraction = 0;
            else if (*at >= '0' && *at <= '9') {
                value = value * 10 + (*at - '0');
                fraction += fraction >= 0;
            } else {
                is_number = 0;
                break;
            }
        }
        if (is_number) values[n] = (double)value / powers[fraction < 0 ? 0 : fraction];
    }
done:
    pieces_close(&p);
    return result;
}

/* pack(data, starts, ends, most, whole) -> (offsets: int32[count + 1], text): the texts behind each other. Those that begin
 * before `whole` are cut at `most` characters, the last of them an ellipsis where it was longer. Absent texts are empty. */
static PyObject *pack(PyObject *self, PyObject *args) {
    PyObject *given[3];
    int most, whole;
    if (!PyArg_ParseTuple(args, "OOOii", given, given + 1, given + 2, &most, &whole)) return NULL;
    Pieces p;
    int ok = pieces_open(&p, given);
    PyObject *result = NULL, *packed = NULL, *text = NULL;
    if (!ok) goto done;
    const unsigned char *data = p.data;
    const int32_t *starts = p.starts, *ends = p.ends;
    Py_ssize_t count = p.count;
    int64_t total = 0;
    for (Py_ssize_t n = 0; n < count; n++) {
        int32_t size = starts[n] < 0 ? 0 : ends[n] - starts[n];
        total += size > most && starts[n] < whole ? most + 2 : size;
    }
    if (total > INT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "more text than 32 bits can count");
        goto done;
    }
    packed = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)sizeof(int32_t) * (count + 1));
    text = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)total);
    if (!packed || !text) goto done;
    int32_t *offsets = (int32_t *)PyBytes_AsString(packed), at = 0;
    unsigned char *out = (unsigned char *)PyBytes_AsString(text);
    for (Py_ssize_t n = 0; n < count; n++) {
        int32_t size = starts[n] < 0 ? 0 : ends[n] - starts[n];
        offsets[n] = at;
        if (size > most && starts[n] < whole) {
            memcpy(out + at, data + starts[n], (size_t)most - 1);
            memcpy(out + at + most - 1, "\xe2\x80\xa6", 3);
            at += most + 2;
        } else if (size) {
            memcpy(out + at, data + starts[n], (size_t)size);
            at += size;
        }
    }
    offsets[count] = at;
    result = PyTuple_Pack(2, packed, text);
done:
    Py_XDECREF(packed);
    Py_XDECREF(text);
    pieces_close(&p);
    return result;
}

/* find(data, starts, ends, needles: tuple of bytes, rares: bytes) -> uint8: 1 where a text holds one of the needles. */
static PyObject *find(PyObject *self, PyObject *args) {
    PyObject *given[3], *needles, *rares;
    if (!PyArg_ParseTuple(args, "OOOO!S", given, given + 1, given + 2, &PyTuple_Type, &needles, &rares)) return NULL;
    if (PyTuple_Size(needles) != PyBytes_Size(rares)) {
        PyErr_SetString(PyExc_ValueError, "columns of different lengths");
        return NULL;
    }
    Pieces p;
    int ok = pieces_open(&p, given);
    PyObject *result = NULL;
    if (!ok) goto done;
    const unsigned char *data = p.data;
    const int32_t *starts = p.starts, *ends = p.ends;
    Py_ssize_t count = p.count;
    result = PyBytes_FromStringAndSize(NULL, count);
    if (!result) goto done;
    unsigned char *found = (unsigned char *)PyBytes_AsString(result);
    memset(found, 0, (size_t)count);
    for (Py_ssize_t which = 0; which < PyTuple_Size(needles); which++) {
        char *needle;
        Py_ssize_t length;
        if (PyBytes_AsStringAndSize(PyTuple_GetItem(needles, which), &needle, &length) < 0) {
            Py_CLEAR(result);
            goto done;
        }
        int32_t rare = (unsigned char)PyBytes_AsString(rares)[which];
        if (rare >= length) continue; /* the empty word is not looked for */
        for (Py_ssize_t n = 0; n < count; n++)
            if (!found[n] && starts[n] >= 0 && ends[n] - starts[n] >= length)
                found[n] = (unsigned char)contains(data + starts[n], ends[n] - starts[n], (unsigned char *)needle, (int32_t)length, rare);
    }
done:
    pieces_close(&p);
    return result;
}

/* rows(data, columns: tuple of (name, starts, ends)) -> list of dicts: the texts of each row by name, without those that are
 * absent; bytes that are no UTF-8 become U+FFFD. A text like that of the row before is the same object. */
static PyObject *rows(PyObject *self, PyObject *args) {
    PyObject *data, *columns, *result = NULL;
    if (!PyArg_ParseTuple(args, "OO!", &data, &PyTuple_Type, &columns)) return NULL;
    Py_ssize_t width = PyTuple_Size(columns), opened = 0, count = 0;
    Pieces *p = calloc((size_t)width + 1, sizeof(Pieces));
    PyObject **names = calloc((size_t)width + 1, sizeof(PyObject *)), **before = calloc((size_t)width + 1, sizeof(PyObject *));
    Py_ssize_t *places = calloc((size_t)width + 1, sizeof(Py_ssize_t));
    if (!p || !names || !before || !places) {
        PyErr_NoMemory();
        goto done;
    }
    for (Py_ssize_t c = 0; c < width; c++) {
        PyObject *given[3] = {data, NULL, NULL};
        if (!PyArg_ParseTuple(PyTuple_GetItem(columns, c), "UOO", names + c, given + 1, given + 2)) goto done;
        int ok = pieces_open(p + c, given);
        opened = c + 1;
        if (!ok) goto done;
        if (c && p[c].count != count) {
            PyErr_SetString(PyExc_ValueError, "columns of different lengths");
            goto done;
        }
        count = p[c].count;
    }
    result = PyList_New(count);
    for (Py_ssize_t n = 0; result && n < count; n++) {
        PyObject *row = PyDict_New();
        if (!row || PyList_SetItem(result, n, row) < 0) { /* the list owns it now */
            Py_CLEAR(result);
            break;
        }
        for (Py_ssize_t c = 0; c < width; c++) {
            int32_t start = p[c].starts[n], size = p[c].ends[n] - start;
            if (start < 0) continue;
            const char *text = (const char *)p[c].data + start;
            int32_t old = before[c] ? p[c].starts[places[c]] : 0;
            if (!before[c] || p[c].ends[places[c]] - old != size || memcmp(p[c].data + old, text, (size_t)size)) {
                Py_XDECREF(before[c]);
                before[c] = PyUnicode_DecodeUTF8(text, size, "replace");
                places[c] = n;
            }
            if (!before[c] || PyDict_SetItem(row, names[c], before[c]) < 0) {
                Py_CLEAR(result);
                break;
            }
        }
    }
done:
    for (Py_ssize_t c = 0; c < opened; c++) {
        pieces_close(p + c);
        Py_XDECREF(before[c]);
    }
    free(p);
    free(names);
    free(before);
    free(places);
    return result;
}

static PyMethodDef methods[] = {
    {"match", match, METH_VARARGS, "Run a program over texts."},
    {"one", one, METH_VARARGS, "Run a program over one text."},
    {"split", split, METH_VARARGS, "Cut a buffer into lines."},
    {"intern", intern, METH_VARARGS, "Number equal texts."},
    {"rank", rank, METH_VARARGS, "Number equal keys."},
    {"integers", integers, METH_VARARGS, "Read texts as integers."},
    {"seconds", seconds, METH_VARARGS, "Read texts as seconds."},
    {"pack", pack, METH_VARARGS, "Copy texts behind each other."},
    {"find", find, METH_VARARGS, "Tell which texts hold one of some words."},
    {"rows", rows, METH_VARARGS, "Hand out texts by the names of their columns."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "replay.grammar._scan", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__scan(void) {
    PyObject *module = PyModule_Create(&definition);
    if (module && PyModule_AddIntConstant(module, "AGREED", AGREED) < 0) Py_CLEAR(module);
    return module;
}
