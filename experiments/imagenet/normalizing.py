"""The mean and the deviation of ImageNet's channels, by which images are normalized."""

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
