/* Adds up the hashes of short rows, bit for bit as `barnabas.spark.sink.digest` does, which says what a digest is.

   Limits: rows that are empty, longer than `LONGEST` or not within the data are declined.

   Source: the finalizer of MurmurHash3 by Austin Appleby. */

#include "barnabas_native.h"

#include <stdint.h>
#include <string.h>

const char digest_doc[] = "digest(data, starts, ends, marks)\n--\n\nSee barnabas_native/_native.pyi.";

#define GOLDEN 0x9E3779B97F4A7C15u
#define BLOCK_BYTES 64
#define WORDS (BLOCK_BYTES / 8)
/* Far more than a short row has; the limit of the format is the Python side's. */
#define LONGEST (1 << 20)

static inline uint64_t
mixed(uint64_t value)
{
    value = (value ^ value >> 33) * 0xFF51AFD7ED558CCDu;
    value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53u;
    return value ^ value >> 33;
}

static inline uint64_t
little_endian(const uint8_t *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof word);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

static inline uint64_t
block_hash(const uint8_t *block, uint64_t number)
{
    uint64_t sum = number * GOLDEN;

    for (uint64_t word = 0; word < WORDS; word++) {
        sum += little_endian(block + 8 * word) * (GOLDEN * (2 * word + 1) | 1);
    }
    return mixed(sum);
}

static inline uint64_t
row_hash(const uint8_t *row, int64_t length)
{
    uint8_t last[BLOCK_BYTES] = {0};
    uint64_t hash = 0, number = 0;

    for (; length > BLOCK_BYTES; length -= BLOCK_BYTES, row += BLOCK_BYTES) {
        hash += block_hash(row, number++);
    }
    memcpy(last, row, (size_t)length);
    return hash + block_hash(last, number);
}

static inline int64_t
number_at(const Py_buffer *numbers, Py_ssize_t index)
{
    int64_t number;

    memcpy(&number, (const char *)numbers->buf + 8 * index, sizeof number);
    return number;
}

/* Add the rows' hashes to `sum`; return whether all rows are as they should be. */
static int
add_rows(const Py_buffer *data, const Py_buffer *starts, const Py_buffer *ends, const Py_buffer *marks, uint64_t *sum)
{
    Py_ssize_t rows = starts->len / 8;

    for (Py_ssize_t i = 0; i < rows; i++) {
        int64_t start = number_at(starts, i), end = number_at(ends, i);
        if (start < 0 || end <= start || end > data->len || end - start > LONGEST) {
            return 0;
        }
        uint64_t hash = row_hash((const uint8_t *)data->buf + start, end - start) + (uint64_t)(end - start);
        if (marks->buf != NULL) {
            hash += (uint64_t)number_at(marks, i);
        }
        *sum += mixed(hash);
    }
    return 1;
}

PyObject *
digest(PyObject *module, PyObject *args)
{
    Py_buffer data, starts, ends, marks;
    PyObject *found = NULL;
    uint64_t sum = 0;
    int is_whole;

    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*y*z*:digest", &data, &starts, &ends, &marks)) {
        return NULL;
    }
    if (starts.len % 8 || starts.len != ends.len || (marks.buf != NULL && marks.len != starts.len)) {
        PyErr_SetString(PyExc_ValueError, "starts, ends and marks have as many numbers of 64 bits");
    } else {
        Py_BEGIN_ALLOW_THREADS
        is_whole = add_rows(&data, &starts, &ends, &marks, &sum);
        Py_END_ALLOW_THREADS
        if (is_whole) {
            found = PyLong_FromUnsignedLongLong(sum);
        } else {
            Py_INCREF(Py_None);
            found = Py_None;
        }
    }
    PyBuffer_Release(&marks);
    PyBuffer_Release(&ends);
    PyBuffer_Release(&starts);
    PyBuffer_Release(&data);
    return found;
}
