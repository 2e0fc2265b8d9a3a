"""What a load costs: what is asked of DynamoDB, by a formula, and what that is in money. Pure."""
