"""How a training uses the machine: processes and devices, precision, compilation."""
