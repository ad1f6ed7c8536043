select data -> 'at' ->> 'n' as n, count(*), jsonb_agg(data -> 'tags' order by id) -> 0 from notes group by 1 order by 2 desc, 1 limit 12;

select count(*) from notes, generate_series(1, 6) where data @> '{"tags": [3]}' and body ~ '[0-9]{3}[a-f]+.*about (1|4|8)';

select substr(regexp_replace(body, '([a-f]+)([0-9])', '\2\1', 'g'), 1, 60), length(replace(upper(body), 'A', '--'))
  from notes where id % 2 = 0 order by md5(body || id) limit 10;

with recursive walk(n, steps) as (select 837799::numeric, 0 union all
  select case when n % 2 = 0 then n / 2 else n * 3 + 1 end, steps + 1 from walk where n > 1)
  select count(*), max(n), sum(steps) from walk;

with recursive tree(id, path, depth) as (select 1, array[1], 0 union all
  select t.id * 2 + k, t.path || (t.id * 2 + k), t.depth + 1 from tree t, generate_series(0, 1) k where t.depth < 13)
  select depth, count(*), max(array_to_string(path, '/')) from tree group by depth order by depth;

select word, count(*) from (select unnest(string_to_array(body, ' ')) as word from notes, generate_series(1, 3)) words group by word
  order by 2 desc, 1 limit 10;

do $$ declare total numeric := 0; line record; begin
  for i in 1..6000 loop
    select body, data into line from notes where id = i;
    total := total + length(line.body) * (line.data ->> 'id')::int;
    if i % 100 = 0 then total := round(sqrt(total), 5); end if;
  end loop;
  raise notice '%', total; end $$;

select id, substr(body, 1, 20) from notes where id = 1 and length(body) > 0;

select id, substr(body, 2, 20) from notes where id = 42 and length(body) > 1;

select id, substr(body, 3, 20) from notes where id = 83 and length(body) > 2;

select id, substr(body, 4, 20) from notes where id = 124 and length(body) > 3;

select id, substr(body, 5, 20) from notes where id = 165 and length(body) > 4;

select id, substr(body, 6, 20) from notes where id = 206 and length(body) > 5;

select id, substr(body, 7, 20) from notes where id = 247 and length(body) > 6;

select id, substr(body, 8, 20) from notes where id = 288 and length(body) > 7;

select id, substr(body, 9, 20) from notes where id = 329 and length(body) > 8;

select id, substr(body, 1, 20) from notes where id = 370 and length(body) > 9;

select id, substr(body, 2, 20) from notes where id = 411 and length(body) > 10;

select id, substr(body, 3, 20) from notes where id = 452 and length(body) > 11;

select id, substr(body, 4, 20) from notes where id = 493 and length(body) > 12;

select id, substr(body, 5, 20) from notes where id = 534 and length(body) > 13;

select id, substr(body, 6, 20) from notes where id = 575 and length(body) > 14;

select id, substr(body, 7, 20) from notes where id = 616 and length(body) > 15;

select id, substr(body, 8, 20) from notes where id = 657 and length(body) > 16;

select id, substr(body, 9, 20) from notes where id = 698 and length(body) > 17;

select id, substr(body, 1, 20) from notes where id = 739 and length(body) > 18;

select id, substr(body, 2, 20) from notes where id = 780 and length(body) > 19;

select id, substr(body, 3, 20) from notes where id = 821 and length(body) > 20;

select id, substr(body, 4, 20) from notes where id = 862 and length(body) > 21;

select id, substr(body, 5, 20) from notes where id = 903 and length(body) > 22;

select id, substr(body, 6, 20) from notes where id = 944 and length(body) > 23;

select id, substr(body, 7, 20) from notes where id = 985 and length(body) > 24;

select id, substr(body, 8, 20) from notes where id = 1026 and length(body) > 25;

select id, substr(body, 9, 20) from notes where id = 1067 and length(body) > 26;

select id, substr(body, 1, 20) from notes where id = 1108 and length(body) > 27;

select id, substr(body, 2, 20) from notes where id = 1149 and length(body) > 28;

select id, substr(body, 3, 20) from notes where id = 1190 and length(body) > 29;

select id, substr(body, 4, 20) from notes where id = 1231 and length(body) > 30;

select id, substr(body, 5, 20) from notes where id = 1272 and length(body) > 31;

select id, substr(body, 6, 20) from notes where id = 1313 and length(body) > 32;

select id, substr(body, 7, 20) from notes where id = 1354 and length(body) > 33;

select id, substr(body, 8, 20) from notes where id = 1395 and length(body) > 34;

select id, substr(body, 9, 20) from notes where id = 1436 and length(body) > 35;

select id, substr(body, 1, 20) from notes where id = 1477 and length(body) > 36;

select id, substr(body, 2, 20) from notes where id = 1518 and length(body) > 37;

select id, substr(body, 3, 20) from notes where id = 1559 and length(body) > 38;

select id, substr(body, 4, 20) from notes where id = 1600 and length(body) > 39;

select id, substr(body, 5, 20) from notes where id = 1641 and length(body) > 40;

select id, substr(body, 6, 20) from notes where id = 1682 and length(body) > 41;

select id, substr(body, 7, 20) from notes where id = 1723 and length(body) > 42;

select id, substr(body, 8, 20) from notes where id = 1764 and length(body) > 43;

select id, substr(body, 9, 20) from notes where id = 1805 and length(body) > 44;

select id, substr(body, 1, 20) from notes where id = 1846 and length(body) > 45;

select id, substr(body, 2, 20) from notes where id = 1887 and length(body) > 46;

select id, substr(body, 3, 20) from notes where id = 1928 and length(body) > 47;

select id, substr(body, 4, 20) from notes where id = 1969 and length(body) > 48;

select id, substr(body, 5, 20) from notes where id = 2010 and length(body) > 49;

select id, substr(body, 6, 20) from notes where id = 2051 and length(body) > 0;

select id, substr(body, 7, 20) from notes where id = 2092 and length(body) > 1;

select id, substr(body, 8, 20) from notes where id = 2133 and length(body) > 2;

select id, substr(body, 9, 20) from notes where id = 2174 and length(body) > 3;

select id, substr(body, 1, 20) from notes where id = 2215 and length(body) > 4;

select id, substr(body, 2, 20) from notes where id = 2256 and length(body) > 5;

select id, substr(body, 3, 20) from notes where id = 2297 and length(body) > 6;

select id, substr(body, 4, 20) from notes where id = 2338 and length(body) > 7;

select id, substr(body, 5, 20) from notes where id = 2379 and length(body) > 8;

select id, substr(body, 6, 20) from notes where id = 2420 and length(body) > 9;

