"""Keys with a collation have their values again behind the text in which they wait and are compared."""

from __future__ import annotations

import pytest

from windrow.spark.analysis.keyed_rows import _text, _value

VALUES = """
('1850-01-01 00:00:07.123456', 0.1D), ('0001-01-01 00:00:00', double('NaN')),
('1582-10-04 23:59:59', double('-Infinity')), ('9999-12-31 23:59:59.999999', -0.0D),
('1937-06-30 12:00:00.5', 1e300D), ('2011-11-06 00:01:00.000001', NULL), (NULL, 5e-324D)
"""
KEYS = f"""
SELECT named_struct(
    'at', CAST(t AS TIMESTAMP), 'local', CAST(t AS TIMESTAMP_NTZ), 'day', CAST(t AS DATE), 'f', f,
    's', 'é"\\n' COLLATE UNICODE_CI, 'd', CAST(1.50 AS DECIMAL(20, 4)), 'b', X'00FF',
    'l', array(1, NULL)) AS k
FROM VALUES {VALUES} AS v(t, f)
"""


@pytest.mark.parametrize("zone", ["UTC", "Africa/Monrovia", "Europe/Amsterdam", "America/St_Johns"])
def test_a_key_is_the_same_behind_its_text(spark, conf, zone):
    """Also times before zones had whole minutes, and the hour that a zone has twice."""
    conf("spark.sql.session.timeZone", zone)
    keys = spark.sql(KEYS)
    kind = keys.schema["k"].dataType
    found = keys.withColumn("text", _text("k")).withColumn("again", _value("text", kind))
    assert found.where("NOT (k <=> again)").collect() == []
    assert found.count() == 7


def test_texts_of_earlier_versions_are_read(spark, conf):
    """They had milliseconds, and the offset of the session's zone."""
    conf("spark.sql.session.timeZone", "Europe/Berlin")
    keys = spark.sql("SELECT struct(TIMESTAMP '2024-07-01 12:00:00.25' AS at, NULL AS n) AS k")
    kind = keys.schema["k"].dataType
    text = keys.selectExpr("k", """CAST('{"x":{"at":"2024-07-01T12:00:00.250+02:00"}}' AS BINARY) AS text""")
    assert text.withColumn("again", _value("text", kind)).where("k <=> again").count() == 1
