"""The Parquet run log: schema, writer, reader."""
