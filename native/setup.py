"""The extension module, built for the stable ABI: one wheel for every CPython from 3.11 on."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "barnabas_native._native",
            sources=["c/module.c", "c/decode.c", "c/digest.c"],
            depends=["c/barnabas_native.h"],
            define_macros=[("Py_LIMITED_API", "0x030B0000")],
            extra_compile_args=["-O2", "-Wall", "-Wextra"],
            py_limited_api=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
