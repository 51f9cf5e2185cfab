"""Real trainings. Started by path in an environment of DLIO: nothing of tiercel imports them."""
