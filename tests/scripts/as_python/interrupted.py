"""Is interrupted from the keyboard."""

print("working")
raise KeyboardInterrupt
