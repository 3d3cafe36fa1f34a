"""Every method, by its command-line name. To add yours: one file, one line in METHODS, one page in docs/methods."""

from manicap.algorithms.barlow_twins import BarlowTwins, BarlowTwinsCPlus
from manicap.algorithms.base import Method
from manicap.algorithms.baselines import Majority, RandomCNN
from manicap.algorithms.byol import BYOL, BYOLCPlus
from manicap.algorithms.cpc import CPC
from manicap.algorithms.dim import DIM
from manicap.algorithms.dim_c_plus import DIMCPlus
from manicap.algorithms.dim_ua import DIMUA, DIMUACPlus, DIMUAWeighted
from manicap.algorithms.global_t_dim import GlobalTDIM
from manicap.algorithms.jsd_st_dim import JSDSTDIM
from manicap.algorithms.mmcr import MMCR
from manicap.algorithms.pixel_pred import PixelPred
from manicap.algorithms.simclr import SimCLR, SimCLRCPlus
from manicap.algorithms.simclr_ua import SimCLRUA
from manicap.algorithms.simsiam import SimSiam, SimSiamCPlus
from manicap.algorithms.st_dim import STDIM
from manicap.algorithms.supervised import Supervised
from manicap.algorithms.tico import TiCo, TiCoCPlus
from manicap.algorithms.vae import VAE
from manicap.algorithms.vicreg import VICReg, VICRegCPlus
from manicap.core.registry import Registry

METHODS: Registry[type[Method]] = Registry(
    "method",
    Method,
    {
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
    },
)


def find_method(name: str) -> type[Method]:
    """The method with this name; `package.module:Name` names one from another package."""
    return METHODS[name]
