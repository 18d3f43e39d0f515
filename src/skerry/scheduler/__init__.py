"""The scheduling framework: profiles, plugins, queue, cycle, extenders, configuration."""
