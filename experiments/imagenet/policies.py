"""What is done to the colours and the shape of an image of training, by recipe."""

from __future__ import annotations

import numpy as np
from PIL import Image

from stmlang.experiments.imagenet.colours import jittered, three_augment
from stmlang.experiments.imagenet.rand_augment import rand_augment
from stmlang.experiments.imagenet.settings import Augmentation


def policy(image: Image.Image, augmentation: Augmentation, generator: np.random.Generator) -> Image.Image:
    """An image changed by the policy, and its colours jittered behind it."""
    match augmentation.policy:
        case "none":
            changed = image
        case "three":
            changed = three_augment(image, generator)
        case "rand":
            magnitude, deviation = augmentation.magnitude, augmentation.deviation
            changed = rand_augment(image, magnitude, deviation, augmentation.operations, generator)
    return jittered(changed, augmentation.jitter, generator) if augmentation.jitter else changed
