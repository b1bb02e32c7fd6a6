"""Made-up inputs."""
