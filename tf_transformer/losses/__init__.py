"""The losses that training minimizes."""
