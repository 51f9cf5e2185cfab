from spack.package import *


class PySnakemakeInterfaceCommon(PythonPackage):
    """What Snakemake and its plugins share."""

    homepage = "https://github.com/snakemake/snakemake-interface-common"
    pypi = "snakemake-interface-common/snakemake_interface_common-1.23.0.tar.gz"

    license("MIT")

    # Spack has 1.22; the Slurm plugin that tiercel uses needs 1.23.
    version("1.23.0", sha256="6ed14531a461417659364a0dd0acc51b786af4e26fc15cc5e00ff3d9fcaffacc")

    depends_on("python@3.8:", type=("build", "run"))
    depends_on("py-setuptools@42:", type="build")
    depends_on("py-argparse-dataclass@2:", type=("build", "run"))
    depends_on("py-configargparse@1.7:", type=("build", "run"))
    depends_on("py-packaging@24:25", type=("build", "run"))
