"""Models on images."""

from stmlang.models.vision.convolution import EfficientNet, convnext, convnext_b, convnext_s
from stmlang.models.vision.model import ImageModel
from stmlang.models.vision.plstm import plstm, plstm_vis, plstm_vis_b, plstm_vis_s, plstm_vis_t
from stmlang.models.vision.recurrent import (
    mamba2d,
    mamba_nd,
    two_d_mamba,
    v2m,
    vil,
    vil_b,
    vil_s,
    vil_t,
    vim,
    vim_s,
    vim_t,
)
from stmlang.models.vision.scanned import ImageScan
from stmlang.models.vision.vit import vit, vit_b, vit_s, vit_t

__all__ = [
    "EfficientNet",
    "ImageModel",
    "ImageScan",
    "convnext",
    "convnext_b",
    "convnext_s",
    "mamba2d",
    "mamba_nd",
    "plstm",
    "plstm_vis",
    "plstm_vis_b",
    "plstm_vis_s",
    "plstm_vis_t",
    "two_d_mamba",
    "v2m",
    "vil",
    "vil_b",
    "vil_s",
    "vil_t",
    "vim",
    "vim_s",
    "vim_t",
    "vit",
    "vit_b",
    "vit_s",
    "vit_t",
]
