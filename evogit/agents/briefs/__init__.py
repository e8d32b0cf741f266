"""What an agent is told: goal, code, lineage, feedback and what others try, as one text with token counts."""
