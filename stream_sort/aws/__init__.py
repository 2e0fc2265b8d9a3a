"""What a stack and an account say of themselves; clients of AWS."""
