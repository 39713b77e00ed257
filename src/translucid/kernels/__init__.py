"""What is fast, and why it may be: products, devices, the machine."""
