-- One table and a derived one: index scans, grouping, a join, updates and deletes.
CREATE TABLE sample(id INTEGER PRIMARY KEY, bucket INT, label TEXT, value REAL);
CREATE TABLE derived(bucket INT, text TEXT);

-- A linear congruential generator fills the table.
WITH RECURSIVE series(i, x) AS (
    SELECT 1, 12345
    UNION ALL
    SELECT i + 1, (x * 1103515245 + 12345) % 2147483648 FROM series WHERE i < $N
)
INSERT INTO sample SELECT i, x % 5000, 'name' || (x % 977), x / 7.0 FROM series;
CREATE INDEX sample_bucket ON sample(bucket);

INSERT INTO derived SELECT bucket, label || '-' || id FROM sample WHERE id % 3 = 0;
CREATE INDEX derived_bucket ON derived(bucket);

SELECT count(*), sum(value), max(label) FROM sample WHERE bucket BETWEEN 100 AND 900;
SELECT bucket, count(*), avg(value) FROM sample GROUP BY bucket ORDER BY 2 DESC, 1 LIMIT 50;
SELECT sample.id, derived.text
    FROM sample JOIN derived ON sample.bucket = derived.bucket
    WHERE sample.id < $N / 200 ORDER BY derived.text LIMIT 100;
UPDATE sample SET value = value * 1.5, label = upper(label) WHERE bucket % 4 = 1;
DELETE FROM sample WHERE bucket < 500;
SELECT count(*) FROM sample WHERE label LIKE '%ME12%';
SELECT label, sum(length(label)) FROM sample GROUP BY label HAVING count(*) > 3 ORDER BY label LIMIT 20;
