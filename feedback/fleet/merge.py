#!/usr/bin/env python3
"""Runs merge.sql on a folder of tables, and writes the merged tables to another.

    merge.py duckdb TABLES MERGED     on one machine: pip install duckdb
    merge.py spark TABLES MERGED      on a cluster, or on local[4]: pip install pyspark; needs Java

TABLES is what `pleach export --format parquet` wrote. `pleach import MERGED -o merged.pleach` makes a profile of the
result. Raw vectors are left out. SPARK_MASTER names another master than local[4].
"""

import os
import pathlib
import sys

TABLES = [
    "runs", "origins", "functions", "blocks", "edges", "coverage", "calls", "value_sites", "site_values", "paths",
    "windows", "called", "predictions",
]


def statements():
    """The statements of merge.sql, without comments."""
    text = pathlib.Path(__file__).with_name("merge.sql").read_text()
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("--"))
    return [s for s in "\n".join(lines).split(";") if s.strip()]


def needs(table, present):
    """Whether a statement can run: its tables are there. A table without rows has no files."""
    return table in present and (table != "coverage" or "functions" in present)


def quoted(path):
    """A path as a literal of SQL."""
    return "'" + str(path).replace("'", "''") + "'"


def on_duckdb(tables, merged, present):
    import duckdb

    db = duckdb.connect()
    if limit := os.environ.get("DUCKDB_MEMORY_LIMIT"):
        db.execute(f"SET memory_limit = '{limit}'")
    # Order costs memory, and nothing here needs it.
    db.execute("SET preserve_insertion_order = false")
    for table in present:
        files = quoted(tables / table / "**" / "*.parquet")
        db.execute(f"CREATE TEMPORARY VIEW {table} AS SELECT * FROM read_parquet({files}, hive_partitioning = false)")
    for table, statement in zip(TABLES, statements()):
        if needs(table, present):
            db.execute(statement)
            (merged / table).mkdir(parents=True)
            file = quoted(merged / table / "merged.parquet")
            db.execute(f"COPY (SELECT * FROM merged_{table}) TO {file} (FORMAT parquet)")


def on_spark(tables, merged, present):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("pleach merge").master(os.environ.get("SPARK_MASTER", "local[4]"))
    spark = (
        builder.config("spark.ui.enabled", "false")
        .config("spark.driver.memory", os.environ.get("SPARK_DRIVER_MEMORY", "2g"))
        .config("spark.sql.shuffle.partitions", os.environ.get("SPARK_PARTITIONS", "8"))
        .config("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
        # A sum beyond its type is an error.
        .config("spark.sql.ansi.enabled", "true")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    for table in present:
        spark.read.parquet(str(tables / table)).createOrReplaceTempView(table)
    for table, statement in zip(TABLES, statements()):
        if needs(table, present):
            spark.sql(statement)
            spark.table(f"merged_{table}").write.parquet(str(merged / table))
    spark.stop()


def main():
    engines = {"duckdb": on_duckdb, "spark": on_spark}
    if len(sys.argv) != 4 or sys.argv[1] not in engines:
        sys.exit(__doc__)
    tables, merged = (pathlib.Path(argument).resolve() for argument in sys.argv[2:])
    present = [table for table in TABLES if any((tables / table).glob("**/*.parquet"))]
    if "runs" not in present:
        sys.exit(f"merge.py: {tables}: no tables of profiles: make them with `pleach export --format parquet`")
    if merged.exists() and any(merged.iterdir()):
        sys.exit(f"merge.py: {merged}: not empty: name a new folder")
    merged.mkdir(parents=True, exist_ok=True)
    engines[sys.argv[1]](tables, merged, present)


if __name__ == "__main__":
    main()
