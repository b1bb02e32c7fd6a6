"""Running programs in tests."""
