"""Importing this lets ``import torch`` find the engine: for processes that multiprocessing starts from a script's."""

from stridescope.engine.worker.hook import install

install()
