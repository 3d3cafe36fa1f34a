"""The flag that names an annotation set."""

from typing import Annotated

import tyro

from manicap.atari.annotations import ANNOTATION_SETS

AnnotationSet = Annotated[str, tyro.conf.arg(help=f"Annotation set: {', '.join(ANNOTATION_SETS)}.", metavar="SET")]
