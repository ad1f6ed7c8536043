select kind, count(*), sum(price), avg(price), min(day), max(day) from orders, generate_series(1, 3) group by rollup (kind) order by 1;

select c.city, o.kind, sum(o.price) as total, count(distinct o.day) from generate_series(1, 2), orders o join customers c on c.id = o.customer
  where o.day between date '2020-03-01' and date '2021-12-31' group by 1, 2 having count(*) > 30 order by 3 desc limit 20;

select * from (select customer, day, price, rank() over (partition by customer order by price desc, id) as place,
  sum(price) over (partition by customer order by day, id) as running from orders) ranked where place <= 1
  order by running desc, customer limit 15;

select date_trunc('month', day) as month, kind, round(stddev(price), 3) from orders, generate_series(1, 3) group by 1, 2 order by 1, 2 limit 40;

select c.name, (select max(o.price) from orders o where o.customer = c.id) as most from customers c order by 2 desc, 1 limit 10;

select count(*) from orders a join orders b on a.day = b.day and a.kind = b.kind and a.id <> b.id where a.price < 20;

