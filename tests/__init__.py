"""Tests, in the same folders as the code; shared parts are in `tests.helpers`."""
