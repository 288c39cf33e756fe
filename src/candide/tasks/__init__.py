"""Tasks: the jobs. Every face calls these and nothing else."""
