# The caching allocator: blocks are cut from segments, kept when freed, and joined again.
import torch

small = torch.ones(100, device="cuda")              # rounded up to 512 bytes, from the small pool
h = torch.empty(3, 512, 1024, device="cuda")        # 6 MiB, cut from a new 20 MiB segment
k = torch.empty(1024, 1024, device="cuda")          # 4 MiB, cut from the rest of that segment
print(torch.cuda.memory_allocated(), torch.cuda.memory_reserved())

del h                                               # allocated falls, reserved stays: the block is cached
again = torch.empty(1024, 1024, device="cuda")      # 4 MiB: the smallest block that fits is cut once more
print(torch.cuda.memory_allocated(), torch.cuda.memory_reserved())

big = torch.empty(3, 1024, 1024, device="cuda")     # 12 MiB: over 10 MiB gets a segment of its own
del again, k, big                                   # free neighbours become one block
torch.cuda.empty_cache()                            # now whole segments go back to the device
print(torch.cuda.memory_allocated(), torch.cuda.memory_reserved())
