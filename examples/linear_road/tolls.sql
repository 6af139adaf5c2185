-- Linear Road: tolls that rise with traffic, and none where there was an accident.
-- Reads the table `reports` that generate.py makes.

CREATE OR REPLACE STREAM positions (
    ROWTIME ts BIGINT UNIT SECONDS, car BIGINT, speed BIGINT, exp_way BIGINT, dir BIGINT, seg BIGINT, x_pos BIGINT)
FROM reports;

-- where each car is: its last report, if it is not older than thirty seconds
CREATE OR REPLACE TEMPORARY VIEW car_segment AS
SELECT car, exp_way, dir, seg FROM positions [PARTITION BY car ROWS 1 RANGE 30 SECONDS];

-- a car that comes into a segment
CREATE OR REPLACE TEMPORARY VIEW segment_entry AS
ISTREAM(SELECT DISTINCT car, exp_way, dir, seg FROM car_segment);

-- a car that has reported one place four times stands; two that stand at one place are an accident
CREATE OR REPLACE TEMPORARY VIEW accident AS
SELECT DISTINCT exp_way, dir, seg
FROM (
    SELECT exp_way, dir, seg, x_pos
    FROM (
        SELECT car, exp_way, dir, MAX(seg) AS seg, MAX(x_pos) AS x_pos
        FROM positions [PARTITION BY car ROWS 4]
        GROUP BY car, exp_way, dir
        HAVING COUNT(*) = 4 AND MIN(x_pos) = MAX(x_pos)) AS standing
    GROUP BY exp_way, dir, seg, x_pos
    HAVING COUNT(*) >= 2) AS places;

CREATE OR REPLACE TEMPORARY VIEW segment_speed AS
SELECT exp_way, dir, seg, AVG(speed) AS speed FROM positions [RANGE 5 MINUTES] GROUP BY exp_way, dir, seg;

CREATE OR REPLACE TEMPORARY VIEW segment_volume AS
SELECT exp_way, dir, seg, COUNT(*) AS cars FROM car_segment GROUP BY exp_way, dir, seg;

-- the toll of a segment that is slow, full, and free of accidents
CREATE OR REPLACE TEMPORARY VIEW segment_toll AS
SELECT v.exp_way, v.dir, v.seg, 2 * (v.cars - 5) * (v.cars - 5) AS toll
FROM segment_speed AS s,
     segment_volume AS v,
     (SELECT exp_way, dir, seg FROM segment_volume EXCEPT SELECT exp_way, dir, seg FROM accident) AS free
WHERE s.exp_way = v.exp_way AND s.dir = v.dir AND s.seg = v.seg
  AND free.exp_way = v.exp_way AND free.dir = v.dir AND free.seg = v.seg
  AND s.speed < 40 AND v.cars > 5;

-- each car is told the toll of the segment that it comes into
RSTREAM(
    SELECT e.car, e.exp_way, e.dir, e.seg, t.toll
    FROM segment_entry [NOW] AS e, segment_toll AS t
    WHERE e.exp_way = t.exp_way AND e.dir = t.dir AND e.seg = t.seg);
