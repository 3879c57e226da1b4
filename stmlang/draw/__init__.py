"""Pictures of a scan: what it runs on, what its gates depend on, what a node reads of another, how it is evaluated."""
