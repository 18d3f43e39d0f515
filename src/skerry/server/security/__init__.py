"""Who is asking, what they may do, and what is written down of it."""
