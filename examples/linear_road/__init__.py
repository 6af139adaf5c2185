"""Linear Road: tolls on expressways, in CQL."""
