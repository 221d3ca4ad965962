"""What the DataLoader is made of."""
