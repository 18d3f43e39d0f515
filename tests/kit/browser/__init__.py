"""What tests in a real browser share: Chromium, a hub with its console, tabs, axe-core."""
