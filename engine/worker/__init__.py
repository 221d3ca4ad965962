"""The worker: the process that runs a user's script, traces it and stops it at steps."""
