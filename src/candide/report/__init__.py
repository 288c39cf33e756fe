"""Reports: what was found, as plain records (``summary``), and what renders them: a terminal, JSON."""
