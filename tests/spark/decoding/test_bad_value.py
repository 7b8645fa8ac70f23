"""The console decodes by Spark's frames and schemas, and has no Spark."""

import subprocess
import sys


def test_frames_and_schemas_need_no_spark() -> None:
    modules = ", ".join(
        f"barnabas.spark.decoding.{each}"
        for each in ("bad_value", "confluent_frame", "writer_schemas", "avro_schemas", "descriptor_sets")
    )
    code = f"import sys, {modules}; print([each for each in ('pyspark', 'pyarrow') if each in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
