"""Live queries on Spark's executors: rows are divided by their keys into *buckets*, and Spark's state store
retains the state of each bucket.

    entries ─ pack ─▶ packets ─ groupBy(bucket).transformWithState ─▶ packets ─ unpack ─▶ changes

A task packs the entries that it reads: the rows of a bucket are an Arrow table in one *packet*
(:mod:`.packing`). What its entries say of the stream's watermark goes to every bucket, so that each bucket
decides alone, in the same micro-batch, which rows are late and up to where the streams are known
(:mod:`windrow.streams.admission.parts`). A bucket (:mod:`.bucket`) does with its rows what the driver does
with all of them: of CQL in :mod:`.windowed`, of EMIT in :mod:`.emitting`, of WINDOW BY and MATCH_RECOGNIZE in
:mod:`.clause`. :mod:`.packets` makes the streaming DataFrame, :mod:`.bucket_steps` runs one as a live query.
"""
