-- Merges the runs of a folder of tables, for DuckDB and for Apache Spark: exact sums alone, so that the order of rows
-- makes no difference, and `pleach import` of the result is what `pleach merge` makes of the same profiles.
--
-- Input: the tables of README.md, as views of their names. Output: views merged_NAME, each with the columns of its table
-- in their order. merge.py makes the former and writes the latter. A sum beyond its type is an error, not another number.

CREATE OR REPLACE TEMPORARY VIEW merged_runs AS
SELECT
    'merged' AS run,
    max(schema_version) AS schema_version,
    CASE WHEN min(anchor) = max(anchor) THEN min(anchor) ELSE 'several' END AS anchor,
    count(*) > 1 OR bool_or(is_sum) AS is_sum,
    max(scale) AS scale,
    CAST(least(sum(samples), CAST('18446744073709551615' AS DECIMAL(20, 0))) AS DECIMAL(20, 0)) AS samples,
    CAST(sum(executions) AS DECIMAL(38, 0)) AS executions,
    max(program_cpu_seconds) AS program_cpu_seconds,
    max(own_cpu_seconds) AS own_cpu_seconds,
    CAST(least(sum(program_nanoseconds), CAST('18446744073709551615' AS DECIMAL(20, 0))) AS DECIMAL(20, 0))
        AS program_nanoseconds,
    CAST(least(sum(own_nanoseconds), CAST('18446744073709551615' AS DECIMAL(20, 0))) AS DECIMAL(20, 0))
        AS own_nanoseconds,
    CAST(least(sum(bursts), CAST('18446744073709551615' AS DECIMAL(20, 0))) AS DECIMAL(20, 0)) AS bursts,
    CAST(least(sum(taken_branches), CAST('18446744073709551615' AS DECIMAL(20, 0))) AS DECIMAL(20, 0))
        AS taken_branches,
    -- Unknown of one is unknown of all.
    CASE
        WHEN min(hot_instance_count) = 0 THEN CAST(0 AS DECIMAL(20, 0))
        ELSE CAST(least(sum(hot_instance_count), CAST('18446744073709551615' AS DECIMAL(20, 0))) AS DECIMAL(20, 0))
    END AS hot_instance_count
FROM runs;

-- One run keeps the order of its commands; of several, only the number of times counts.
CREATE OR REPLACE TEMPORARY VIEW merged_origins AS
SELECT
    'merged' AS run,
    kind,
    min(position) AS position,
    value,
    build,
    CASE
        WHEN kind = 'command' THEN CAST(sum(times) AS DECIMAL(20, 0))
        ELSE CAST(1 AS DECIMAL(20, 0))
    END AS times
FROM origins
CROSS JOIN (SELECT count(*) AS number FROM runs) AS all_runs
GROUP BY kind, value, build, CASE WHEN number = 1 THEN position ELSE 0 END;

CREATE OR REPLACE TEMPORARY VIEW merged_functions AS
SELECT
    'merged' AS run,
    guid,
    module,
    cfg_hash,
    coalesce(min(CASE WHEN name <> '' THEN name END), '') AS name,
    CAST(least(sum(samples), CAST('18446744073709551615' AS DECIMAL(20, 0))) AS DECIMAL(20, 0)) AS samples,
    max(blocks) AS blocks,
    max(edges) AS edges,
    min(graph) AS graph,
    bool_or(has_coverage) AS has_coverage,
    bool_or(has_counted) AS has_counted
FROM functions
GROUP BY guid, module, cfg_hash;

CREATE OR REPLACE TEMPORARY VIEW merged_blocks AS
SELECT
    'merged' AS run,
    guid,
    module,
    cfg_hash,
    block,
    CAST(least(sum(count), CAST('18446744073709551615' AS DECIMAL(20, 0))) AS DECIMAL(20, 0)) AS count
FROM blocks
GROUP BY guid, module, cfg_hash, block;

CREATE OR REPLACE TEMPORARY VIEW merged_edges AS
SELECT
    'merged' AS run,
    guid,
    module,
    cfg_hash,
    edge,
    CAST(least(sum(count), CAST('18446744073709551615' AS DECIMAL(20, 0))) AS DECIMAL(20, 0)) AS count
FROM edges
GROUP BY guid, module, cfg_hash, edge;

-- A run that has the function, but no row here, knows nothing of its blocks: state 2, and executions without limit.
CREATE OR REPLACE TEMPORARY VIEW merged_coverage AS
SELECT
    'merged' AS run,
    known.guid,
    known.module,
    known.cfg_hash,
    known.block,
    CASE WHEN known.number < present.number THEN greatest(known.state, 2) ELSE known.state END AS state,
    known.at_least,
    CASE WHEN known.limited = present.number THEN known.at_most END AS at_most
FROM (
    SELECT
        guid,
        module,
        cfg_hash,
        block,
        max(state) AS state,
        count(*) AS number,
        count(at_most) AS limited,
        CAST(least(sum(at_least), CAST('18446744073709551615' AS DECIMAL(20, 0))) AS DECIMAL(20, 0)) AS at_least,
        CAST(least(sum(at_most), CAST('18446744073709551615' AS DECIMAL(20, 0))) AS DECIMAL(20, 0)) AS at_most
    FROM coverage
    GROUP BY guid, module, cfg_hash, block
) AS known
JOIN (
    SELECT guid, module, cfg_hash, count(*) AS number
    FROM functions
    GROUP BY guid, module, cfg_hash
) AS present
    ON known.guid = present.guid AND known.module = present.module AND known.cfg_hash = present.cfg_hash;

CREATE OR REPLACE TEMPORARY VIEW merged_calls AS
SELECT
    'merged' AS run,
    guid,
    module,
    cfg_hash,
    call,
    target,
    CAST(least(sum(count), CAST('18446744073709551615' AS DECIMAL(20, 0))) AS DECIMAL(20, 0)) AS count
FROM calls
GROUP BY guid, module, cfg_hash, call, target;

CREATE OR REPLACE TEMPORARY VIEW merged_value_sites AS
SELECT
    'merged' AS run,
    guid,
    module,
    cfg_hash,
    site,
    CAST(least(sum(bursts), CAST('18446744073709551615' AS DECIMAL(20, 0))) AS DECIMAL(20, 0)) AS bursts,
    CAST(least(sum(others), CAST('18446744073709551615' AS DECIMAL(20, 0))) AS DECIMAL(20, 0)) AS others
FROM value_sites
GROUP BY guid, module, cfg_hash, site;

CREATE OR REPLACE TEMPORARY VIEW merged_site_values AS
SELECT
    'merged' AS run,
    guid,
    module,
    cfg_hash,
    site,
    value,
    CAST(least(sum(count), CAST('18446744073709551615' AS DECIMAL(20, 0))) AS DECIMAL(20, 0)) AS count
FROM site_values
GROUP BY guid, module, cfg_hash, site, value;

-- The estimate of a single recording stays what it is. Those of sums are for queries: import computes them again.
CREATE OR REPLACE TEMPORARY VIEW merged_paths AS
SELECT
    'merged' AS run,
    guid,
    module,
    cfg_hash,
    path,
    count(*) > 1 OR bool_or(is_sum) AS is_sum,
    sum(count) AS count,
    CASE
        WHEN count(*) > 1 OR bool_or(is_sum)
            THEN greatest(sum(count) - sqrt(CAST(sum(sum_low) AS DOUBLE) / 256), CAST(0 AS DOUBLE))
        ELSE max(low)
    END AS low,
    CASE
        WHEN count(*) > 1 OR bool_or(is_sum) THEN sum(count) + sqrt(CAST(sum(sum_high) AS DOUBLE) / 256)
        ELSE max(high)
    END AS high,
    sum(effective) AS effective,
    CAST(sum(sum_count) AS DECIMAL(38, 0)) AS sum_count,
    CAST(sum(sum_low) AS DECIMAL(38, 0)) AS sum_low,
    CAST(sum(sum_high) AS DECIMAL(38, 0)) AS sum_high,
    CAST(sum(sum_effective) AS DECIMAL(38, 0)) AS sum_effective,
    CAST(least(sum(certain), CAST('18446744073709551615' AS DECIMAL(20, 0))) AS DECIMAL(20, 0)) AS certain,
    CAST(sum(sum_kish) AS DECIMAL(38, 0)) AS sum_kish
FROM paths
GROUP BY guid, module, cfg_hash, path;

CREATE OR REPLACE TEMPORARY VIEW merged_windows AS
SELECT
    'merged' AS run,
    guid,
    module,
    cfg_hash,
    paths,
    count(*) > 1 OR bool_or(is_sum) AS is_sum,
    sum(count) AS count,
    CAST(sum(sum_count) AS DECIMAL(38, 0)) AS sum_count
FROM windows
GROUP BY guid, module, cfg_hash, paths;

CREATE OR REPLACE TEMPORARY VIEW merged_called AS
SELECT
    'merged' AS run,
    guid,
    module,
    cfg_hash,
    caller_guid,
    caller_module,
    caller_cfg_hash,
    before,
    path,
    count(*) > 1 OR bool_or(is_sum) AS is_sum,
    sum(count) AS count,
    CAST(sum(sum_count) AS DECIMAL(38, 0)) AS sum_count
FROM called
GROUP BY guid, module, cfg_hash, caller_guid, caller_module, caller_cfg_hash, before, path;

CREATE OR REPLACE TEMPORARY VIEW merged_predictions AS
SELECT
    'merged' AS run,
    guid,
    module,
    cfg_hash,
    block,
    count(*) > 1 OR bool_or(is_sum) AS is_sum,
    sum(watched) AS watched,
    sum(mispredicted) AS mispredicted,
    CASE
        WHEN count(*) > 1 OR bool_or(is_sum)
            THEN greatest(sum(mispredicted) - sqrt(CAST(sum(sum_low) AS DOUBLE) / 256), CAST(0 AS DOUBLE))
        ELSE max(low)
    END AS low,
    CAST(sum(sum_watched) AS DECIMAL(38, 0)) AS sum_watched,
    CAST(sum(sum_mispredicted) AS DECIMAL(38, 0)) AS sum_mispredicted,
    CAST(sum(sum_low) AS DECIMAL(38, 0)) AS sum_low
FROM predictions
GROUP BY guid, module, cfg_hash, block;
