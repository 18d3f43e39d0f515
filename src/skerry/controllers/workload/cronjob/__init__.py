"""Starts Jobs by schedule.

Reads CronJobs and Jobs. Writes Jobs (created when due, replaced or deleted as the policy and the
history limits say) and the CronJob's status.

Invariants: one scheduled time starts at most one Job, because the Job's name is the time. Of
several missed times only the latest is made up for, and only within the starting deadline.
"""
