from translucid.memory.opening import open_memory as open_memory
