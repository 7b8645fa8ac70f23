"""`make typed`: every command of the README and of docs/, typed in an empty folder from the wheel, and what it prints compared."""
