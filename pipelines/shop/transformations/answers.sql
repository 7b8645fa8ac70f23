-- The answers, from the tables. `spark-pipelines run` stores the materialized views; `python -m shop run` makes them
-- plain views, which are up to date whenever they are asked.

CREATE VIEW lines AS
SELECT * EXCEPT (text, reason) FROM checked_orders WHERE reason IS NULL;

CREATE VIEW rejected AS
SELECT topic, partition, offset, received_at, reason, text FROM checked_orders WHERE reason IS NOT NULL;

CREATE VIEW rejected_by_reason AS
SELECT reason, count(*) AS lines FROM rejected GROUP BY reason;

-- Revenue is net: a cancellation counts in the minute in which it happened.
CREATE MATERIALIZED VIEW revenue_by_minute AS
SELECT date_trunc('MINUTE', at) AS minute, country, sum(amount) AS revenue, count(*) AS lines
FROM lines GROUP BY ALL;

CREATE VIEW revenue_by_day AS
SELECT date(minute) AS day, sum(revenue) AS revenue, sum(lines) AS lines FROM revenue_by_minute GROUP BY ALL;

CREATE VIEW revenue_by_country AS
SELECT country, sum(revenue) AS revenue, sum(lines) AS lines FROM revenue_by_minute GROUP BY country;

CREATE MATERIALIZED VIEW best_sellers AS
SELECT stock_code, max(description) AS description, sum(quantity) AS pieces, sum(amount) AS revenue
FROM lines GROUP BY stock_code;

-- An article is always in one partition, so its newest event has the highest offset.
CREATE MATERIALIZED VIEW stock AS
SELECT stock_code, max_by(level, offset) AS level, max_by(delivered, offset) AS delivered
FROM stock_events GROUP BY stock_code;

-- A payment is what its latest attempt came to. A maximum, not a count: an event that was sent twice changes nothing.
CREATE MATERIALIZED VIEW payments AS
SELECT payment, last.order_id, last.event, last.attempt, last.amount
FROM (
  SELECT payment, max(struct(attempt, event <> 'payment.initiated' AS is_result, event, order_id, amount)) AS last
  FROM payment_events GROUP BY payment
);

-- Large lines, and large lines which the same customer cancelled within the hour.
CREATE MATERIALIZED VIEW suspicious_orders AS
SELECT 'large' AS kind, order_id, line, at, customer, country, description, quantity, amount, NULL AS cancelled_at
FROM lines WHERE amount >= 5000
UNION ALL
SELECT 'taken back', o.order_id, o.line, o.at, o.customer, o.country, o.description, o.quantity, o.amount, c.at
FROM lines o JOIN lines c
  ON o.customer = c.customer AND o.stock_code = c.stock_code AND o.quantity = -c.quantity
  AND c.at BETWEEN o.at AND o.at + INTERVAL 1 HOUR
WHERE o.amount >= 1000 AND c.amount <= -1000;
