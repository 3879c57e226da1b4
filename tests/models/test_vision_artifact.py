"""pLSTM-Vis as an artifact: it predicts where there is neither Equinox nor the models."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import equinox as eqx
import jax
import numpy as np

import stmlang
from stmlang.models.vision import plstm_vis

SERVE = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("equinox", "optax") or name.startswith(("stmlang.models", "stmlang.nn")):
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocked())
import numpy as np
import stmlang
loaded = stmlang.load(sys.argv[1])
np.save(sys.argv[3], loaded(np.load(sys.argv[2])))
"""


def test_a_trained_model_predicts_elsewhere(tmp_path: Path) -> None:
    """One that draws random numbers in training, after a step of it, for several images at once."""
    model = plstm_vis(
        16, heads=2, depth=2, classes=3, channels=1, patch=2, size=(6, 4), expansion=2, drop_path=0.2, key=jax.random.key(0)
    )
    images = jax.random.normal(jax.random.key(1), (5, 6, 4, 1), "float32")

    @eqx.filter_jit
    def trained(model: eqx.Module, images: jax.Array) -> eqx.Module:
        def loss(model: eqx.Module) -> jax.Array:
            return jax.numpy.sum(jax.vmap(lambda image: model(image, key=jax.random.key(2)))(images) ** 2)

        return eqx.apply_updates(model, jax.tree.map(lambda slope: -1e-2 * slope, eqx.filter_grad(loss)(model)))

    model = trained(model, images)
    stmlang.export(model, jax.ShapeDtypeStruct((6, 4, 1), "float32"), tmp_path / "model.stmx", platforms=["cpu"])
    np.save(tmp_path / "images.npy", images)
    paths = [str(tmp_path / name) for name in ("model.stmx", "images.npy", "logits.npy")]
    subprocess.run([sys.executable, "-c", SERVE, *paths], check=True, timeout=300, cwd=tmp_path)
    expected = eqx.filter_jit(lambda model, images: jax.vmap(model)(images))(eqx.nn.inference_mode(model), images)
    np.testing.assert_allclose(np.load(paths[2]), expected, atol=1e-5)
