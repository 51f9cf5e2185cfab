from spack.package import *


class PySnakemakeInterfaceExecutorPlugins(PythonPackage):
    """The interface between Snakemake and its executor plugins."""

    homepage = "https://github.com/snakemake/snakemake-interface-executor-plugins"
    pypi = "snakemake-interface-executor-plugins/snakemake_interface_executor_plugins-9.4.0.tar.gz"

    license("MIT")

    # Spack has 9.3; the Slurm plugin that tiercel uses needs 9.4.
    version("9.4.0", sha256="9d4138897beacbaadaedad94b63f948eaeb604b7fc78f9cf65ac57f090f2c066")

    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-poetry-core", type="build")
    depends_on("py-argparse-dataclass@2:", type=("build", "run"))
    depends_on("py-snakemake-interface-common@1.19:", type=("build", "run"))
    depends_on("py-throttler@1.2.2:", type=("build", "run"))
