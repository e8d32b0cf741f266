"""Options that several commands have, and what they mean."""
