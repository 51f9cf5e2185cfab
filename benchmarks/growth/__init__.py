"""How the cost of tiercel's commands grows with the work: processor time, memory, files and bytes."""
