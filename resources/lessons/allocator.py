# The caching allocator: blocks are cut from segments, kept when freed, and joined again.
import torch

small = torch.ones(100, device="cuda")              # rounded up to 512 bytes, from the small pool
h = torch.empty(3, 1024, 1024, device="cuda")       # 12 MiB out of a new 20 MiB segment
k = torch.empty(1024, 1024, device="cuda")          # 4 MiB: the rest of that segment is cut
print(torch.cuda.memory_allocated(), torch.cuda.memory_reserved())

del h                                               # allocated falls, reserved stays: the block is cached
again = torch.empty(2, 1024, 1024, device="cuda")   # 8 MiB: the cached block is cut
print(torch.cuda.memory_allocated(), torch.cuda.memory_reserved())

del again, k                                        # free neighbours become one block
torch.cuda.empty_cache()                            # now the whole segment goes back to the device
print(torch.cuda.memory_allocated(), torch.cuda.memory_reserved())
