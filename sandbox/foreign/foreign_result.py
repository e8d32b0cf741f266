"""What evaluators of other systems may return instead of a dictionary of metrics."""

from dataclasses import dataclass, field


@dataclass
class EvaluationResult:
    """Metrics, and artifacts that whoever writes the next program is told."""

    metrics: dict
    artifacts: dict = field(default_factory=dict)

    @classmethod
    def from_dict(cls, metrics):
        """A result with metrics alone."""
        return cls(metrics)

    def to_dict(self):
        """The metrics alone."""
        return self.metrics

    def has_artifacts(self):
        """Whether there are any."""
        return bool(self.artifacts)

    def get_artifact_keys(self):
        """Their names."""
        return list(self.artifacts)

    def get_artifact_size(self, key):
        """Bytes of one; 0 where there is none of that name."""
        value = self.artifacts.get(key, b"")
        return len(value if isinstance(value, bytes) else str(value).encode())

    def get_total_artifact_size(self):
        """Bytes of all."""
        return sum(map(self.get_artifact_size, self.artifacts))
