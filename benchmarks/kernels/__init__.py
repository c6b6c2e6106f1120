"""Times of the plain and tuned forms of equations, and of both sides of each threshold."""
