"""Models on images."""

from stmlang.models.vision.model import ImageModel
from stmlang.models.vision.plstm import plstm, plstm_vis, plstm_vis_b, plstm_vis_s, plstm_vis_t
from stmlang.models.vision.scanned import ImageScan

__all__ = ["ImageModel", "ImageScan", "plstm", "plstm_vis", "plstm_vis_b", "plstm_vis_s", "plstm_vis_t"]
