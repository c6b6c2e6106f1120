"""The parts that all benchmarks share: processes, turns, usage, tables and result files."""
