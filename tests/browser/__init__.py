"""`make browser`: the console, judged in a real browser."""
