"""Lets the tests run pytest on test files of their own."""

pytest_plugins = ["pytester"]
