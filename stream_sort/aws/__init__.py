"""Clients of AWS and what their errors mean; what a stack and an account say of themselves."""
