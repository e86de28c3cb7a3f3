"""A second pipeline: library code that was not written with a compiler in mind."""
from skimage import color

NAME = "scikit-image: rgb2ypbpr, rgb2gray"


def pipeline(picture):
    """Chroma-weighted gray of a float64 (height, width, 3) image in [0, 1]."""
    luma_chroma = color.rgb2ypbpr(picture)
    gray = color.rgb2gray(picture)
    return gray + 0.5 * abs(luma_chroma[..., 1]) + 0.5 * abs(luma_chroma[..., 2])
