"""What every cluster needs besides its API server: namespaces end, garbage goes, quotas count."""
