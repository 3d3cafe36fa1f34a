"""Every method, by the name people type. To add yours: one file, one line in METHODS, a page in docs/methods."""

from manicap.core.errors import unknown_choice
from manicap.methods.barlow_twins import BarlowTwins, BarlowTwinsCPlus
from manicap.methods.base import Method
from manicap.methods.baselines import Majority, RandomCNN
from manicap.methods.byol import BYOL, BYOLCPlus
from manicap.methods.cpc import CPC
from manicap.methods.dim import DIM
from manicap.methods.dim_c_plus import DIMCPlus
from manicap.methods.dim_ua import DIMUA, DIMUACPlus, DIMUAWeighted
from manicap.methods.global_t_dim import GlobalTDIM
from manicap.methods.jsd_st_dim import JSDSTDIM
from manicap.methods.mmcr import MMCR
from manicap.methods.pixel_pred import PixelPred
from manicap.methods.simclr import SimCLR, SimCLRCPlus
from manicap.methods.simclr_ua import SimCLRUA
from manicap.methods.simsiam import SimSiam, SimSiamCPlus
from manicap.methods.st_dim import STDIM
from manicap.methods.supervised import Supervised
from manicap.methods.tico import TiCo, TiCoCPlus
from manicap.methods.vae import VAE
from manicap.methods.vicreg import VICReg, VICRegCPlus

METHODS: dict[str, type[Method]] = {
    "dim-c+": DIMCPlus,
    "dim-uac+": DIMUACPlus,
    "dim-ua": DIMUA,
    "dim-ua-weighted": DIMUAWeighted,
    "st-dim": STDIM,
    "cpc": CPC,
    "vae": VAE,
    "pixel-pred": PixelPred,
    "dim": DIM,
    "jsd-st-dim": JSDSTDIM,
    "global-t-dim": GlobalTDIM,
    "supervised": Supervised,
    "random-cnn": RandomCNN,
    "majority": Majority,
    "simclr": SimCLR,
    "simclr-c+": SimCLRCPlus,
    "simclr-ua": SimCLRUA,
    "barlow-twins": BarlowTwins,
    "barlow-twins-c+": BarlowTwinsCPlus,
    "mmcr": MMCR,
    "vicreg": VICReg,
    "vicreg-c+": VICRegCPlus,
    "byol": BYOL,
    "byol-c+": BYOLCPlus,
    "simsiam": SimSiam,
    "simsiam-c+": SimSiamCPlus,
    "tico": TiCo,
    "tico-c+": TiCoCPlus,
}


def find_method(name: str) -> type[Method]:
    if name not in METHODS:
        raise unknown_choice("method", name, METHODS)
    return METHODS[name]
