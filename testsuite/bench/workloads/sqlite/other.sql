-- Places and routes between them: an R-tree, a recursive walk, triggers, views, common table expressions and upserts.
CREATE TABLE place(id INTEGER PRIMARY KEY, x REAL, y REAL, kind TEXT NOT NULL);
CREATE TABLE route(origin INT, target INT, cost INT, PRIMARY KEY(origin, target)) WITHOUT ROWID;
CREATE TABLE tally(kind TEXT PRIMARY KEY, places INT);
CREATE VIRTUAL TABLE area USING rtree(id, x1, x2, y1, y2);

CREATE TRIGGER count_place AFTER INSERT ON place BEGIN
    INSERT INTO tally VALUES (new.kind, 1) ON CONFLICT(kind) DO UPDATE SET places = places + 1;
END;

BEGIN;
WITH RECURSIVE series(i, x) AS (
    SELECT 1, 4242
    UNION ALL
    SELECT i + 1, (x * 1664525 + 1013904223) % 4294967296 FROM series WHERE i < $N
)
INSERT INTO place SELECT i, (x >> 5) % 10007 / 10.0, (x >> 11) % 9973 / 10.0, 'kind' || (x >> 13) % 37 FROM series;
INSERT INTO area SELECT id, x, x + 1, y, y + 1 FROM place;
INSERT OR REPLACE INTO route SELECT id, id * 7919 % $N + 1, id % 91 FROM place;
INSERT OR REPLACE INTO route SELECT id, id * 104729 % $N + 1, id % 53 FROM place;
COMMIT;

CREATE VIEW busy AS SELECT target, count(*) AS arrivals, min(cost) AS cheapest FROM route GROUP BY target;

SELECT kind, places FROM tally ORDER BY places DESC, kind;
SELECT count(*) FROM area WHERE x1 > 100 AND x2 < 300 AND y1 > 50 AND y2 < 400;
SELECT place.kind, count(*), max(arrivals), total(cheapest)
    FROM busy JOIN place ON place.id = busy.target GROUP BY place.kind ORDER BY 2 DESC, 1;
WITH RECURSIVE walk(id, cost, steps) AS (
    SELECT 1, 0, 0
    UNION
    SELECT route.target, walk.cost + route.cost, steps + 1
        FROM walk JOIN route ON route.origin = walk.id WHERE steps < 12
)
SELECT steps, count(*), min(cost), max(cost) FROM walk GROUP BY steps ORDER BY steps;
SELECT kind, x, sum(y) OVER (PARTITION BY kind ORDER BY x, id ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) AS sliding
    FROM place ORDER BY sliding DESC, id LIMIT 100;
SELECT substr(kind, 5) + 0 AS number, printf('%.2f', avg(x * y)) FROM place GROUP BY number ORDER BY number;
DELETE FROM route WHERE cost > 40;
SELECT count(*), sum(cost) FROM route WHERE origin IN (SELECT id FROM place WHERE kind LIKE 'kind1%');
