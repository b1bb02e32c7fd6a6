"""Artificial inputs."""
