/* The extension module `barnabas_native._native`. */

#include "barnabas_native.h"

static PyMethodDef methods[] = {
    {"decode", decode, METH_VARARGS, decode_doc},
    {"digest", digest, METH_VARARGS, digest_doc},
    {NULL, NULL, 0, NULL},
};

static int
add_numbers(PyObject *module)
{
    if (PyModule_AddIntConstant(module, "INTERFACE", INTERFACE) < 0
        || PyModule_AddIntConstant(module, "KEY", KEY) < 0
        || PyModule_AddIntConstant(module, "VALUE", VALUE) < 0
        || PyModule_AddIntConstant(module, "HEADERS", HEADERS) < 0
        || PyModule_AddIntConstant(module, "TIMESTAMP", TIMESTAMP) < 0) {
        return -1;
    }
    return 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, add_numbers},
    {0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "barnabas_native._native",
    .m_size = 0,
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC
PyInit__native(void)
{
    return PyModuleDef_Init(&definition);
}
