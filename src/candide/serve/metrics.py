"""Metrics: what a server has done so far, as Prometheus reads it.

>>> metrics = Metrics()
>>> metrics.add("/predict", 200, 0.0004, rows=3)
>>> [line for line in metrics.to_text().splitlines() if line.startswith("candide_rows")]
['candide_rows_total{path="/predict"} 3']
"""

import time
from bisect import bisect_left
from collections import Counter
from itertools import accumulate

_BUCKET_EDGES = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds


class Metrics:
    """Counts by path: requests by status, seconds, rows. Only one thread adds to them."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.rows: Counter[str] = Counter()
        self.seconds: Counter[str] = Counter()
        self._bucket_counts: dict[str, list[int]] = {}
        self.running = 0

    def add(self, path: str, status: int, seconds: float, rows: int = 0) -> None:
        """Take note of a request that was answered."""
        self.requests[path, status] += 1
        self.rows[path] += rows
        self.seconds[path] += seconds  # type: ignore[assignment]
        times = self._bucket_counts.setdefault(path, [0] * (len(_BUCKET_EDGES) + 1))
        times[bisect_left(_BUCKET_EDGES, seconds)] += 1

    def to_text(self, **gauges: float) -> str:
        """All of them, and numbers that are asked of others."""
        lines = ["# TYPE candide_requests_total counter"]
        lines += [
            f'candide_requests_total{{path="{path}",status="{status}"}} {n}'
            for (path, status), n in sorted(self.requests.items())
        ]
        lines += ["# TYPE candide_rows_total counter"]
        lines += [f'candide_rows_total{{path="{path}"}} {n}' for path, n in sorted(self.rows.items())]
        lines += ["# TYPE candide_request_seconds histogram"]
        for path, times in sorted(self._bucket_counts.items()):
            for edge, n in zip((*_BUCKET_EDGES, "+Inf"), accumulate(times), strict=True):
                lines.append(f'candide_request_seconds_bucket{{path="{path}",le="{edge}"}} {n}')
            lines.append(f'candide_request_seconds_sum{{path="{path}"}} {self.seconds[path]:.6f}')
            lines.append(f'candide_request_seconds_count{{path="{path}"}} {sum(times)}')
        known = {"candide_requests_running": self.running, **{f"candide_{name}": v for name, v in gauges.items()}}
        for name, value in known.items():
            lines += [f"# TYPE {name} gauge", f"{name} {value:g}"]
        lines += ["# TYPE process_cpu_seconds_total counter", f"process_cpu_seconds_total {time.process_time():.3f}"]
        return "\n".join(lines) + "\n"
