"""Live queries on Spark's executors: rows are divided by their keys into *buckets*, and Spark's state store
retains the state of each bucket.

    entries ─ pack ─▶ packets ─ groupBy(bucket).transformWithState ─▶ packets ─ unpack ─▶ changes

A task packs the entries that it reads: the rows of a bucket are an Arrow table in one *packet*
(:mod:`.input.packing`). Information about the stream's watermark goes to every bucket. So each bucket decides
alone, in the same micro-batch, which rows are late and up to which instant the streams are complete
(:mod:`windrow.streams.admission.parts`). A bucket (:mod:`.bucket`) processes its rows as the driver processes
all rows: for CQL in :mod:`.buckets.windowed`, for EMIT in :mod:`.buckets.emitting`, for WINDOW BY and
MATCH_RECOGNIZE in :mod:`.buckets.clause`. :mod:`.packets` makes the streaming DataFrame, and
:mod:`.bucket_steps` runs one as a live query.
"""
