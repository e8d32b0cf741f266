"""The Docker provider: daemon, images, options, owners and the worker that drives containers."""
