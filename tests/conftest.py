"""One thread everywhere: the same bits in every process, and no more threads than cores."""

import os

import torch

os.environ["OMP_NUM_THREADS"] = "1"  # of processes that tests start
torch.set_num_threads(1)
