/* Walks the records of Kafka's record batches (magic 2, not compressed) once, and fills Arrow's buffers.

   length | attributes | timestamp delta | offset delta | key length, key | value length, value | header count, headers

   The first pass, `scan_*`, reads the numbers. It checks every length against the end of its record, which it has
   checked against the end of its batch, and notes where each key, value and header is. The second pass, `fill_*`,
   copies the bytes that the first one noted. It reads no number again, so that a buffer which another thread changes
   meanwhile gives wrong bytes, but no access outside the buffer.

   The functions find no error: what they doubt they decline, and numpy's decoder has the word. So there is one place
   for each error's sentence, and what is accepted here is only what numpy's decoder accepts with the same result.

   Limits: the data has fewer than 2**31 bytes. A length has at most five bytes.

   Source: org.apache.kafka.common.record.DefaultRecord. */

#include "barnabas_native.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

const char decode_doc[] = "decode(data, batches, columns, allocate)\n--\n\nSee barnabas_native/_native.pyi.";

/* Attributes, two deltas, two lengths and a header count of one byte each, and the record's own length. */
#define SMALLEST_RECORD 7
#define TIMESTAMP_LIMIT_MS (INT64_MAX / 1000)
/* Offsets, timestamps, two buffers of a list, and three of each of four columns. */
#define MOST_BUFFERS 16

typedef enum { DONE, DECLINED, NO_MEMORY } Outcome;

typedef struct {
    const uint8_t *at;
    const uint8_t *end;
} Cursor;

/* A row of the argument `batches`. */
typedef struct {
    int64_t start;
    int64_t end;
    int64_t records;
    int64_t base_offset;
    int64_t timestamp;
    int64_t is_append_time;
} Batch;

/* Where a key, a value, or a part of a header is; its length is -1 if it is null. */
typedef struct {
    uint32_t position;
    int32_t length;
} Slot;

typedef struct {
    Slot *slots;
    Py_ssize_t count;
    Py_ssize_t capacity;
    Py_ssize_t nulls;
    int64_t bytes;
} Column;

typedef struct {
    const uint8_t *data;
    int columns;
    Py_ssize_t rows;
    Py_ssize_t row;
    int64_t last_offset;
    int64_t *offsets;
    int64_t *timestamps;
    /* For each row the number of headers in the rows before it. */
    int32_t *first_header;
    Py_ssize_t rows_without_headers;
    Column key;
    Column value;
    Column header_key;
    Column header_value;
    /* Python's function for new buffers, and those that it has given. */
    PyObject *allocate;
    Py_buffer buffers[MOST_BUFFERS];
    int buffer_count;
} Scan;

/* Read a zigzag number of at most `most` bytes; return whether there is one. */
static inline int
read_number(Cursor *cursor, int most, int64_t *number)
{
    const uint8_t *at = cursor->at;
    uint64_t value = 0;
    int shift = 0;
    uint8_t byte;

    do {
        if (at == cursor->end || shift == 7 * most) {
            return 0;
        }
        byte = *at++;
        value |= (uint64_t)(byte & 127) << shift;
        shift += 7;
    } while (byte > 127);
    cursor->at = at;
    *number = (int64_t)((value >> 1) ^ (0 - (value & 1)));
    return 1;
}

static Outcome
reserve(Column *column, Py_ssize_t capacity)
{
    Slot *slots = realloc(column->slots, (size_t)capacity * sizeof(Slot));
    if (slots == NULL) {
        return NO_MEMORY;
    }
    column->slots = slots;
    column->capacity = capacity;
    return DONE;
}

/* Read a length and skip as many bytes. They become the column's next slot, unless `column` is NULL. */
static inline Outcome
scan_bytes(Scan *scan, Cursor *cursor, Column *column)
{
    int64_t length;

    if (!read_number(cursor, 5, &length) || length < -1 || length > cursor->end - cursor->at) {
        return DECLINED;
    }
    if (column != NULL) {
        if (column->count == column->capacity && reserve(column, 2 * column->capacity + 64) != DONE) {
            return NO_MEMORY;
        }
        Slot *slot = &column->slots[column->count++];
        slot->position = (uint32_t)(cursor->at - scan->data);
        slot->length = (int32_t)length;
        if (length < 0) {
            column->nulls++;
        } else if ((column->bytes += length) > INT32_MAX) {
            return DECLINED;
        }
    }
    cursor->at += length < 0 ? 0 : length;
    return DONE;
}

static Outcome
scan_headers(Scan *scan, Cursor *cursor)
{
    Outcome outcome;
    int64_t count;

    if (!read_number(cursor, 5, &count) || count < 0 || count > cursor->end - cursor->at) {
        return DECLINED;
    }
    scan->rows_without_headers += count == 0;
    for (int64_t i = 0; i < count; i++) {
        if ((outcome = scan_bytes(scan, cursor, &scan->header_key)) != DONE
            || (outcome = scan_bytes(scan, cursor, &scan->header_value)) != DONE) {
            return outcome;
        }
    }
    if (scan->header_key.nulls || scan->header_key.count > INT32_MAX) {
        return DECLINED;
    }
    scan->first_header[scan->row + 1] = (int32_t)scan->header_key.count;
    return DONE;
}

static inline int64_t
microseconds(const Batch *batch, int64_t delta)
{
    int64_t ms = batch->timestamp;

    if (!batch->is_append_time) {
        /* Around the end of 64 bits, as numpy adds. */
        ms = (int64_t)((uint64_t)ms + (uint64_t)delta);
    }
    ms = ms > TIMESTAMP_LIMIT_MS ? TIMESTAMP_LIMIT_MS : ms;
    ms = ms < -TIMESTAMP_LIMIT_MS ? -TIMESTAMP_LIMIT_MS : ms;
    return ms * 1000;
}

/* Read one record; the cursor spans what comes after its length. */
static inline Outcome
scan_record(Scan *scan, Cursor *cursor, const Batch *batch)
{
    Outcome outcome;
    int64_t timestamp_delta, offset_delta;

    if (cursor->at == cursor->end) {
        return DECLINED;
    }
    cursor->at++; /* The attributes, which are not used yet. */
    if (!read_number(cursor, 10, &timestamp_delta) || !read_number(cursor, 5, &offset_delta)) {
        return DECLINED;
    }
    if (offset_delta < 0 || batch->base_offset > INT64_MAX - offset_delta) {
        return DECLINED;
    }
    int64_t offset = batch->base_offset + offset_delta;
    if (offset <= scan->last_offset) {
        return DECLINED;
    }
    scan->last_offset = scan->offsets[scan->row] = offset;
    if (scan->columns & TIMESTAMP) {
        scan->timestamps[scan->row] = microseconds(batch, timestamp_delta);
    }
    /* The bytes of a record follow each other: a field is found behind the one before. */
    if (scan->columns & (KEY | VALUE | HEADERS)
        && (outcome = scan_bytes(scan, cursor, scan->columns & KEY ? &scan->key : NULL)) != DONE) {
        return outcome;
    }
    if (scan->columns & (VALUE | HEADERS)
        && (outcome = scan_bytes(scan, cursor, scan->columns & VALUE ? &scan->value : NULL)) != DONE) {
        return outcome;
    }
    if (scan->columns & HEADERS && (outcome = scan_headers(scan, cursor)) != DONE) {
        return outcome;
    }
    scan->row++;
    return DONE;
}

static Outcome
scan_batch(Scan *scan, const Batch *batch)
{
    const uint8_t *at = scan->data + batch->start;
    const uint8_t *end = scan->data + batch->end;

    for (int64_t i = 0; i < batch->records; i++) {
        Outcome outcome;
        int64_t length;
        Cursor cursor = {at, end};

        if (!read_number(&cursor, 5, &length) || length < 0 || length > end - cursor.at) {
            return DECLINED;
        }
        at = cursor.end = cursor.at + length;
        if ((outcome = scan_record(scan, &cursor, batch)) != DONE) {
            return outcome;
        }
    }
    return at == end ? DONE : DECLINED;
}

static inline Batch
batch_at(const Py_buffer *batches, Py_ssize_t index)
{
    Batch batch;

    memcpy(&batch, (const char *)batches->buf + index * (Py_ssize_t)sizeof batch, sizeof batch);
    return batch;
}

/* Return the records of all batches, -1 if a batch is not within the data or cannot have its number of records. */
static Py_ssize_t
count_rows(const Py_buffer *data, const Py_buffer *batches, Py_ssize_t batch_count)
{
    int64_t rows = 0;

    for (Py_ssize_t i = 0; i < batch_count; i++) {
        Batch batch = batch_at(batches, i);
        if (batch.start < 0 || batch.end < batch.start || batch.end > data->len || batch.base_offset < 0
            || batch.records < 0 || batch.records > (batch.end - batch.start) / SMALLEST_RECORD
            || (rows += batch.records) > INT32_MAX / 8) {
            return -1;
        }
    }
    return (Py_ssize_t)rows;
}

static Outcome
scan_all(Scan *scan, const Py_buffer *batches, Py_ssize_t batch_count)
{
    Outcome outcome;

    if ((scan->columns & KEY && (outcome = reserve(&scan->key, scan->rows + 1)) != DONE)
        || (scan->columns & VALUE && (outcome = reserve(&scan->value, scan->rows + 1)) != DONE)) {
        return outcome;
    }
    for (Py_ssize_t i = 0; i < batch_count; i++) {
        Batch batch = batch_at(batches, i);
        if ((outcome = scan_batch(scan, &batch)) != DONE) {
            return outcome;
        }
    }
    return DONE;
}

static void
fill_column(const Scan *scan, const Column *column, int32_t *offsets, uint8_t *bytes, uint8_t *validity)
{
    int32_t end = 0;

    for (Py_ssize_t i = 0; i < column->count; i++) {
        Slot slot = column->slots[i];
        offsets[i] = end;
        if (slot.length > 0) {
            memcpy(bytes + end, scan->data + slot.position, (size_t)slot.length);
            end += slot.length;
        }
    }
    offsets[column->count] = end;
    if (validity != NULL) {
        for (Py_ssize_t i = 0; i < column->count; i++) {
            validity[i >> 3] |= (uint8_t)((column->slots[i].length >= 0) << (i & 7));
        }
    }
}

/* Let `pointer` point to a new buffer of `size` bytes, all of them zero if `is_zeroed`; return the buffer's object. */
static PyObject *
new_buffer(Scan *scan, int64_t size, int is_zeroed, void *pointer)
{
    Py_buffer *view = &scan->buffers[scan->buffer_count];
    PyObject *object;

    /* A buffer before this one may have failed. */
    if (PyErr_Occurred() || (object = PyObject_CallFunction(scan->allocate, "n", (Py_ssize_t)size)) == NULL) {
        return NULL;
    }
    if (PyObject_GetBuffer(object, view, PyBUF_WRITABLE) < 0) {
        Py_DECREF(object);
        return NULL;
    }
    scan->buffer_count++;
    if (view->len < size) {
        PyErr_SetString(PyExc_ValueError, "allocate gave a buffer that is too small");
        Py_DECREF(object);
        return NULL;
    }
    if (is_zeroed && size > 0) {
        memset(view->buf, 0, (size_t)size);
    }
    memcpy(pointer, &view->buf, sizeof view->buf);
    return object;
}

static PyObject *
none(void)
{
    Py_INCREF(Py_None);
    return Py_None;
}

/* Return (validity or None, offsets, bytes) of a column. */
static PyObject *
column_buffers(Scan *scan, const Column *column)
{
    int32_t *offsets = NULL;
    uint8_t *bytes = NULL, *validity = NULL;
    PyObject *validity_buffer = column->nulls ? new_buffer(scan, (column->count + 7) / 8, 1, &validity) : none();
    PyObject *offset_buffer = new_buffer(scan, 4 * (int64_t)(column->count + 1), 0, &offsets);
    PyObject *data = new_buffer(scan, column->bytes, 0, &bytes);

    if (validity_buffer == NULL || offset_buffer == NULL || data == NULL) {
        Py_XDECREF(validity_buffer);
        Py_XDECREF(offset_buffer);
        Py_XDECREF(data);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    fill_column(scan, column, offsets, bytes, validity);
    Py_END_ALLOW_THREADS
    return Py_BuildValue("(NNN)", validity_buffer, offset_buffer, data);
}

/* Return (validity or None, the rows' offsets, keys, values), and take over the rows' offsets. */
static PyObject *
header_buffers(Scan *scan, PyObject *row_offsets)
{
    uint8_t *validity = NULL;
    PyObject *keys = column_buffers(scan, &scan->header_key);
    PyObject *values = column_buffers(scan, &scan->header_value);
    PyObject *validity_buffer = none();

    if (scan->rows_without_headers) {
        Py_DECREF(validity_buffer);
        validity_buffer = new_buffer(scan, (scan->rows + 7) / 8, 1, &validity);
    }
    if (keys == NULL || values == NULL || validity_buffer == NULL) {
        Py_XDECREF(keys);
        Py_XDECREF(values);
        Py_XDECREF(validity_buffer);
        Py_DECREF(row_offsets);
        return NULL;
    }
    if (validity != NULL) {
        for (Py_ssize_t i = 0; i < scan->rows; i++) {
            validity[i >> 3] |= (uint8_t)((scan->first_header[i] < scan->first_header[i + 1]) << (i & 7));
        }
    }
    return Py_BuildValue("(NNNN)", validity_buffer, row_offsets, keys, values);
}

/* Return the result of `decode` for a scan that is done, and take over the bytes. */
static PyObject *
result(Scan *scan, PyObject *offsets, PyObject *timestamps, PyObject *row_offsets)
{
    PyObject *key = scan->columns & KEY ? column_buffers(scan, &scan->key) : none();
    PyObject *value = scan->columns & VALUE ? column_buffers(scan, &scan->value) : none();
    PyObject *headers = scan->columns & HEADERS ? header_buffers(scan, row_offsets) : row_offsets;

    if (key == NULL || value == NULL || headers == NULL) {
        Py_XDECREF(key);
        Py_XDECREF(value);
        Py_XDECREF(headers);
        Py_DECREF(offsets);
        Py_DECREF(timestamps);
        return NULL;
    }
    return Py_BuildValue("(NNNNN)", offsets, timestamps, key, value, headers);
}

static PyObject *
decode_into(Scan *scan, const Py_buffer *batches, Py_ssize_t batch_count)
{
    Outcome outcome;
    int64_t rows = scan->rows;
    PyObject *offsets = new_buffer(scan, 8 * rows, 0, &scan->offsets);
    PyObject *timestamps = scan->columns & TIMESTAMP ? new_buffer(scan, 8 * rows, 0, &scan->timestamps) : none();
    PyObject *row_offsets = scan->columns & HEADERS ? new_buffer(scan, 4 * (rows + 1), 1, &scan->first_header) : none();

    if (offsets == NULL || timestamps == NULL || row_offsets == NULL) {
        outcome = NO_MEMORY;
    } else {
        Py_BEGIN_ALLOW_THREADS
        outcome = scan_all(scan, batches, batch_count);
        Py_END_ALLOW_THREADS
        if (outcome == DONE) {
            return result(scan, offsets, timestamps, row_offsets);
        }
    }
    Py_XDECREF(offsets);
    Py_XDECREF(timestamps);
    Py_XDECREF(row_offsets);
    if (outcome == DECLINED) {
        return none();
    }
    return PyErr_Occurred() ? NULL : PyErr_NoMemory();
}

PyObject *
decode(PyObject *module, PyObject *args)
{
    Py_buffer data, batches;
    Scan scan = {0};
    PyObject *found;

    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*iO:decode", &data, &batches, &scan.columns, &scan.allocate)) {
        return NULL;
    }
    Py_ssize_t batch_count = batches.len / (Py_ssize_t)sizeof(Batch);
    scan.data = data.buf;
    scan.last_offset = -1;
    scan.rows = data.len > INT32_MAX ? -1 : count_rows(&data, &batches, batch_count);
    if (batches.len % (Py_ssize_t)sizeof(Batch)) {
        PyErr_SetString(PyExc_ValueError, "batches are rows of six numbers of 64 bits");
        found = NULL;
    } else {
        found = scan.rows < 0 ? none() : decode_into(&scan, &batches, batch_count);
    }
    for (int i = 0; i < scan.buffer_count; i++) {
        PyBuffer_Release(&scan.buffers[i]);
    }
    free(scan.key.slots);
    free(scan.value.slots);
    free(scan.header_key.slots);
    free(scan.header_value.slots);
    PyBuffer_Release(&batches);
    PyBuffer_Release(&data);
    return found;
}
