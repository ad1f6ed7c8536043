-- People and their orders: joins, windows, full-text search, JSON, and changes through subqueries.
CREATE TABLE person(id INTEGER PRIMARY KEY, city INT, name TEXT, age INT, score REAL);
CREATE TABLE orders(id INTEGER PRIMARY KEY, person INT, amount REAL, item TEXT, day INT);

BEGIN;
WITH RECURSIVE series(i, x) AS (
    SELECT 1, 777
    UNION ALL
    SELECT i + 1, (x * 1664525 + 1013904223) % 4294967296 FROM series WHERE i < $N
)
INSERT INTO person
    SELECT i, (x >> 8) % 300, printf('p%05d', (x >> 4) % 9973), (x >> 10) % 90, x / 3.0 FROM series;
WITH RECURSIVE series(i, x) AS (
    SELECT 1, 999
    UNION ALL
    SELECT i + 1, (x * 1664525 + 1013904223) % 4294967296 FROM series WHERE i < $N * 2
)
INSERT INTO orders(person, amount, item, day)
    SELECT (x >> 6) % $N + 1, ((x >> 3) % 10000) / 100.0, 'it' || ((x >> 9) % 500), (x >> 12) % 365 FROM series;
COMMIT;
CREATE INDEX orders_person ON orders(person);
CREATE INDEX person_city ON person(city, age);

SELECT person.city, count(*), round(sum(orders.amount), 2)
    FROM person JOIN orders ON orders.person = person.id
    GROUP BY person.city ORDER BY 3 DESC LIMIT 25;
SELECT name, rank() OVER (PARTITION BY city ORDER BY score DESC) AS place
    FROM person WHERE age > 70 ORDER BY place, name LIMIT 200;
SELECT item, day, count(*) AS sales
    FROM orders WHERE day BETWEEN 50 AND 200
    GROUP BY item, day HAVING sales > 1 ORDER BY sales DESC, item, day LIMIT 50;
SELECT count(*) FROM person
    WHERE EXISTS(SELECT 1 FROM orders WHERE orders.person = person.id AND orders.amount > 95);
SELECT count(DISTINCT substr(name, 2, 3)), group_concat(DISTINCT age) FROM person;

CREATE VIRTUAL TABLE notes USING fts5(body);
INSERT INTO notes SELECT name || ' ' || age || ' city' || city FROM person WHERE id % 4 = 0;
SELECT count(*) FROM notes WHERE notes MATCH 'city12 OR city13';

UPDATE orders SET amount = amount * 0.9 WHERE item IN (SELECT 'it' || id FROM person WHERE id < 120);
SELECT json_extract(json_object('a', amount, 'b', json_array(day, person)), '$.b[1]') AS value, count(*)
    FROM orders GROUP BY value ORDER BY 2 DESC, 1 LIMIT 20;
DELETE FROM orders WHERE person % 7 = 3;
SELECT total(amount), count(*) FROM orders;
SELECT name FROM person WHERE name GLOB 'p0[1-3]*9' ORDER BY name LIMIT 10;
