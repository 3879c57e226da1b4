"""Classification of images: the paper's recipes for ImageNet (section 5.2 and its appendix), and a small one for two cores.

python -m stmlang.experiments.imagenet --recipe small --data FOLDER

`reading.py` finds images in folders and in tar shards; `examples.py` makes batches of them by number, each with random numbers
of its own, so that worker processes and a run that goes on give the same bits.
"""
