"""Models behind a server: requests joined into batches, and the APIs of `tf-transformer serve`."""
