/* The functions of the module, one C file each. */

#ifndef BARNABAS_NATIVE_H
#define BARNABAS_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Python's side checks this number, and does without a module that has another one. */
#define INTERFACE 1

/* The columns that `decode` can be asked for. */
enum { KEY = 1, VALUE = 2, HEADERS = 4, TIMESTAMP = 8 };

extern const char decode_doc[];
PyObject *decode(PyObject *module, PyObject *args);

extern const char digest_doc[];
PyObject *digest(PyObject *module, PyObject *args);

#endif
